"""External runs whose agent asks for decisions itself: taking one up, and ending it.

The claim works as a worker's does: it raises the run's epoch and sets a lease. Its token is that epoch: a fence between
two processes of one agent, not a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from runs.bodies import result_place, seal
from runs.engine.wording import storable
from runs.errors import RunError, WrongState
from runs.hooks import Cursor, hooks
from runs.services.locking import LockedRun, lock_run
from runs.services.posted import encoded
from runs.states import OUTSIDE, RunStatus

CLAIM_LASTS = timedelta(minutes=15)

CLAIM = """
    UPDATE runs_head
    SET status = 'running', epoch = epoch + %s, lease = fermata_now() + %s, updated_at = now()
    WHERE run_id = %s AND (status = 'queued' OR status = 'running' AND (lease <= fermata_now() OR epoch = %s))
    RETURNING epoch, lease, head_seq
"""
HOLDER = "SELECT lease FROM runs_head WHERE run_id = %s"
END_HEAD = """
    UPDATE runs_head SET status = %s, lease = NULL, detail = '', updated_at = now() WHERE run_id = %s
"""
END_RUN = """
    UPDATE runs_run SET finished_at = fermata_now(), result = %s, error_type = %s, error = %s WHERE id = %s
"""


@dataclass(frozen=True)
class ExternalClaim:
    """A hold on a run until `expires_at`; `checkpoint` is what to go on from."""

    token: str
    expires_at: datetime
    checkpoint: int


@dataclass
class ClaimedElsewhere(RunError):
    """Another process of the agent has the run, or had it since this one's token was given out."""

    run_id: UUID
    until: datetime | None

    def __str__(self) -> str:
        return "another process has taken up this run" + (f" until {self.until.isoformat()}" if self.until else "")


def claim_external(*, run_id: UUID, token: str | None = None) -> ExternalClaim:
    """Take up a decided run, or hold on to it longer with the `token` of the claim.

    Raises RunNotFound; WrongState when there is nothing to go on with; ClaimedElsewhere.
    """
    held = -1 if token is None else _epoch(run_id, token)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        if run.resume_mode not in OUTSIDE or run.status not in (RunStatus.QUEUED, RunStatus.RUNNING):
            raise WrongState(run_id, run.status, "taken up by an agent")
        claim = _claim(cursor, run, held)
        if claim is None:
            cursor.execute(HOLDER, (run_id,))
            raise ClaimedElsewhere(run_id, cursor.fetchone()[0])
    return claim


def check_claim(run: LockedRun, token: str | None) -> None:
    """Let the holder of the newest claim pass, and anybody where there is none. Raises ClaimedElsewhere."""
    if (run.status == RunStatus.RUNNING or token is not None) and token != str(run.epoch):
        raise ClaimedElsewhere(run.run_id, None)


def finish_external(
    *, run_id: UUID, token: str | None, actor: str, result: Any = None, error: str | None = None
) -> bool:
    """Say how the run ended: completed with `result` (JSON), or failed with `error`. False: it was said before.

    What is still open for it is closed. Raises RunNotFound, InvalidInput, SnapshotTooLarge, WrongState,
    ClaimedElsewhere.
    """
    body = seal(encoded(result, "result"), result_place(run_id)) if error is None else None
    status = RunStatus.COMPLETED if error is None else RunStatus.FAILED
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        if run.status == status:
            return False
        if run.resume_mode not in OUTSIDE or run.status not in (RunStatus.QUEUED, RunStatus.RUNNING):
            raise WrongState(run_id, run.status, f"{status.value} by its agent")
        check_claim(run, token)
        if run.status == RunStatus.QUEUED:
            _claim(cursor, run)
        _end(cursor, run, status, body=body, error=storable(error or ""), actor=actor)
    return True


def _claim(cursor: Cursor, run: LockedRun, held: int = -1) -> ExternalClaim | None:
    """Raise the epoch, unless the claim with epoch `held` is only to last longer. None: somebody else has the run."""
    cursor.execute(CLAIM, (0 if run.epoch == held else 1, CLAIM_LASTS, run.run_id, held))
    row = cursor.fetchone()
    return None if row is None else ExternalClaim(token=str(row[0]), expires_at=row[1], checkpoint=row[2])


def _end(cursor: Cursor, run: LockedRun, status: RunStatus, *, body: bytes | None, error: str, actor: str) -> None:
    cursor.execute(END_HEAD, (status.value, run.run_id))
    error_type = "AgentError" if error else ""
    cursor.execute(END_RUN, (body, error_type, error, run.run_id))
    hooks().run_ended(
        cursor,
        run_id=run.run_id,
        team_id=run.team_id,
        reason=f"the run {status.value}",
        type="run.finished",
        actor=actor,
        body={"status": status.value, "error": error_type},
    )


def _epoch(run_id: UUID, token: str) -> int:
    if not (token.isascii() and token.isdigit() and len(token) < 19):
        raise ClaimedElsewhere(run_id, None)
    return int(token)
