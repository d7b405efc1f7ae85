"""The first lock of everything that decides about a run: its head, `FOR NO KEY UPDATE`."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from runs.errors import RunNotFound
from runs.hooks import Cursor

LOCK = """
    SELECT h.run_id, r.team_id, h.status, h.reason, h.epoch, h.turn, h.phase, h.head_seq, h.workflow, r.kind,
           r.resume_mode
    FROM runs_head h JOIN runs_run r ON r.id = h.run_id
    WHERE h.run_id = %s
    FOR NO KEY UPDATE OF h
"""


@dataclass(frozen=True)
class LockedRun:
    """A run's head as it stands under the lock; true until the transaction ends."""

    run_id: UUID
    team_id: int
    status: str
    reason: str
    epoch: int
    turn: int
    phase: str
    head_seq: int
    workflow: str
    kind: str
    resume_mode: str


def lock_run(cursor: Cursor, run_id: UUID) -> LockedRun:
    """Lock the run for the rest of the transaction. Raises RunNotFound."""
    cursor.execute(LOCK, (run_id,))
    row = cursor.fetchone()
    if row is None:
        raise RunNotFound(run_id)
    return LockedRun(*row)
