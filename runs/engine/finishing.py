"""The end of a run, for good or until the code changes: all that belongs to it in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from checkpoints.store import Prepared
from runs.bodies import result_place, seal
from runs.engine.composing import composed
from runs.engine.failpoints import failpoint
from runs.engine.ownership import Ownership
from runs.engine.wording import storable
from runs.hooks import hooks
from runs.states import RunStatus

MAX_TRACEBACK = 100_000  # characters; the end of a traceback says the most

END_HEAD = """
    UPDATE runs_head
    SET status = %s, head_seq = %s, lease = NULL, draining = false, detail = '', build = %s, updated_at = now()
    WHERE run_id = %s AND epoch = %s AND head_seq = %s AND lease > (SELECT fermata_now())
      AND {more}
    RETURNING run_id
"""
# On its own it has no transaction that says how long it may wait for a lock while it holds the run's.
END_AT_ONCE = "(SELECT set_config('lock_timeout', '2s', true)) <> '' AND {nothing_open}"
END_RUN = """
    UPDATE runs_run SET finished_at = fermata_now(), result = %s, error_type = %s, error = %s, traceback = %s
    FROM fence WHERE runs_run.id = fence.run_id
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
    checkpoint: Prepared | None = None,
    turn: int = 0,
    phase: str = "",
) -> None:
    """End the run, with its last snapshot. Raises LostRun."""

    own.anchor()
    end: dict[str, Any] = {
        "reason": f"the run {ending.status.value}",
        "type": "run.finished",
        "actor": "worker",
        # What the error said is the run's content, and is erased with it; the trail is for ever.
        "body": {"status": ending.status.value, "error": ending.error_type},
    }

    def write() -> None:
        failpoint("finish.before")
        seq = checkpoint.head.seq if checkpoint else own.head_seq
        head = (ending.status.value, seq, own.build, own.run_id, own.epoch, own.head_seq)
        waiting = own.checkpoint_ctes(checkpoint, turn=turn, phase=phase) if checkpoint else own.riders.deliveries()
        body = None if ending.result is None else seal(ending.result, result_place(own.run_id))
        run = (body, ending.error_type, ending.error, ending.traceback)
        ctes = [("ended", END_RUN, run), *waiting]
        closing = hooks().closing(run_id=own.run_id, **end)
        at_once = END_HEAD.format(more=END_AT_ONCE.format(nothing_open=closing.nothing_open))
        row = own.connection.execute(*composed(at_once, head, [*ctes, *closing.ctes], closing.result)).fetchone()
        if not (row and row[0]):  # something is open, or the run is lost
            with own.connection.transaction() as cursor:
                result = "SELECT team_id FROM ended"
                (team_id,) = own.fenced_within(cursor, END_HEAD.format(more="true"), head, ctes, result)
                hooks().run_ended(cursor, run_id=own.run_id, team_id=team_id, **end)
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
