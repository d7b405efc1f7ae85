"""The end of a run, for good or until the code changes: all that belongs to it in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from checkpoints.store import Prepared, insert
from runs.bodies import result_place, seal
from runs.engine.failpoints import failpoint
from runs.engine.ownership import Ownership
from runs.engine.wording import storable
from runs.hooks import Cursor, hooks
from runs.states import RunStatus

MAX_TRACEBACK = 100_000  # characters; the end of a traceback says the most

END_HEAD = """
    UPDATE runs_head
    SET status = %s, head_seq = %s, lease = NULL, draining = false, detail = '', build = %s, updated_at = now()
    WHERE run_id = %s AND epoch = %s AND status = 'running'
"""
END_RUN = """
    UPDATE runs_run SET finished_at = fermata_now(), result = %s, error_type = %s, error = %s, traceback = %s
    WHERE id = %s
    RETURNING team_id
"""


@dataclass(frozen=True)
class Ending:
    status: RunStatus
    result: bytes | None
    error_type: str
    error: str
    traceback: str

    @classmethod
    def completed(cls, result: bytes) -> Ending:
        return cls(RunStatus.COMPLETED, result, "", "", "")

    @classmethod
    def failed(cls, error_type: str, error: str, traceback: str) -> Ending:
        return cls(RunStatus.FAILED, None, error_type[:120], storable(error), storable(traceback)[-MAX_TRACEBACK:])


def finish(
    own: Ownership,
    ending: Ending,
    *,
    checkpoint: Callable[[int], Prepared] | None = None,
    turn: int = 0,
    phase: str = "",
) -> None:
    """End the run. `checkpoint` makes the last snapshot for an epoch. Raises LostRun."""

    def write() -> None:
        failpoint("finish.before")
        with own.held() as cursor:
            seq = own.head_seq
            if checkpoint is not None:
                own.write_reads(cursor, turn=turn, phase=phase)
                prepared = checkpoint(own.epoch)
                insert(cursor, prepared)
                seq = prepared.head.seq
            cursor.execute(END_HEAD, (ending.status.value, seq, own.build, own.run_id, own.epoch))
            write_end(cursor, own=own, ending=ending)
        failpoint("finish.after")

    own.durably(write)


def block(own: Ownership, why: str) -> None:
    """Leave the run blocked: nothing is lost, and it goes on when the code has changed. Raises LostRun."""

    def write() -> None:
        failpoint("release.before")
        with own.held() as cursor:
            own.leave_within(cursor, status=RunStatus.BLOCKED.value, detail=why)
            cursor.execute("SELECT team_id FROM runs_run WHERE id = %s", (own.run_id,))
            hooks().record(
                cursor,
                run_id=own.run_id,
                team_id=cursor.fetchone()[0],
                type="run.blocked",
                actor="worker",
                body={"why": why},
            )
        failpoint("release.after")

    own.durably(write)


def write_end(cursor: Cursor, *, own: Ownership, ending: Ending) -> None:
    result = None if ending.result is None else seal(ending.result, result_place(own.run_id))
    cursor.execute(END_RUN, (result, ending.error_type, ending.error, ending.traceback, own.run_id))
    team_id = cursor.fetchone()[0]
    hooks().run_ended(cursor, run_id=own.run_id, reason=f"the run {ending.status.value}")
    hooks().record(
        cursor,
        run_id=own.run_id,
        team_id=team_id,
        type="run.finished",
        actor="worker",
        body={"status": ending.status.value, "error": f"{ending.error_type}: {ending.error}"[:500].strip(": ")},
    )
