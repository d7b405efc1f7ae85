"""Giving a run what it waits for, under the run's lock, so that a park and an answer cannot miss each other."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection, transaction

from checkpoints import codec
from runs.bodies import answer_place, event_place, opened, outcome_place, seal
from runs.dispatch import ring
from runs.errors import EventConflict, WrongState
from runs.hooks import Cursor
from runs.services.announcing import RUN_READY, announce
from runs.services.locking import LockedRun, lock_run
from runs.services.posted import encoded
from runs.states import FINISHED, OUTSIDE, GateKind, ResumeMode, RunStatus, StepState, SuspendReason

ANSWER = """
    UPDATE runs_gate SET answer = %s, answered_at = fermata_now()
    WHERE run_id = %s AND turn = %s AND key = %s AND answer IS NULL
"""
UNANSWERED = "SELECT 1 FROM runs_gate WHERE run_id = %s AND turn = %s AND answer IS NULL LIMIT 1"
WAKE = """
    UPDATE runs_head
    SET status = 'queued', reason = '', detail = '', wake_at = NULL, rung_at = fermata_now(), rings = 1,
        updated_at = now()
    WHERE run_id = %s AND status = 'suspended'
"""
KEEP_EVENT = "INSERT INTO runs_event (run_id, name, payload) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
READ_EVENT = "SELECT payload FROM runs_event WHERE run_id = %s AND name = %s"
RESOLVE = """
    UPDATE runs_step SET state = %s, outcome = %s, finished_at = fermata_now()
    WHERE run_id = %s AND turn = %s AND key = %s AND state = 'intent'
"""


def answer_gate(cursor: Cursor, *, run_id: UUID, turn: int, key: str, answer: dict[str, Any]) -> bool:
    """Set a gate's answer, once, in the caller's transaction; wake the run when it was the last one missing.

    Takes the run's lock itself (again is harmless). False: the gate has an answer, or the run asks no such thing.
    `answer` is JSON-like. The doorbell rings on commit.
    """
    run = lock_run(cursor, run_id)
    body = codec.encode(codec.redact(answer), path="answer")  # a decision must not fail for the words it came with
    body = seal(body, answer_place(run_id, turn, key, GateKind.APPROVAL))
    cursor.execute(ANSWER, (body, run_id, turn, key))
    if cursor.rowcount != 1:
        return False
    wake_if_answered(cursor, run)
    return True


def wake_if_answered(cursor: Cursor, run: LockedRun) -> None:
    """Queue a run that is suspended at its gates, if all of them are answered."""
    waits = {SuspendReason.APPROVAL, SuspendReason.EVENT, SuspendReason.TIMER}
    if run.status != RunStatus.SUSPENDED or run.reason not in waits:
        return
    cursor.execute(UNANSWERED, (run.run_id, run.turn))
    if cursor.fetchone() is None:
        wake(cursor, run)


def wake(cursor: Cursor, run: LockedRun) -> None:
    """Suspended to queued. A worker is rung for, or the agent told, whoever goes on with it."""
    cursor.execute(WAKE, (run.run_id,))
    if run.resume_mode == ResumeMode.WEBHOOK:
        announce(cursor, run, RUN_READY)
    elif run.resume_mode not in OUTSIDE:
        ring(run.run_id)


def record_event(*, run_id: UUID, name: str, payload: Any) -> bool:
    """Tell a run that something happened outside, before or after it waits for it. Once per name.

    False: the same was told before. Raises RunNotFound, InvalidInput, SnapshotTooLarge, WrongState (the run is over),
    EventConflict (told otherwise).
    """
    body = seal(encoded(payload, "payload"), event_place(run_id, name))
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        if run.status in FINISHED:
            raise WrongState(run_id, run.status, "told anything")
        cursor.execute(KEEP_EVENT, (run_id, name, body))
        if cursor.rowcount != 1:
            cursor.execute(READ_EVENT, (run_id, name))
            if opened(cursor.fetchone()[0], event_place(run_id, name), what=f"event {name!r}") != payload:
                raise EventConflict(run_id, name)
            return False
        cursor.execute(ANSWER + " AND kind = 'event'", (body, run_id, run.turn, name))
        if cursor.rowcount == 1:
            wake_if_answered(cursor, run)
    return True


def resolve_step(cursor: Cursor, *, run_id: UUID, turn: int, key: str, happened: bool, outcome: Any = None) -> None:
    """Settle a step in doubt by a human's word, in the caller's transaction, and queue the run.

    `outcome`: what the call returned, if it happened. Raises RunNotFound; WrongState where it is no longer in doubt.
    """
    run = lock_run(cursor, run_id)
    state = StepState.DONE if happened else StepState.NOT_PERFORMED
    body = codec.encode(outcome if happened else {"why": "a person said so"}, path="outcome")
    cursor.execute(RESOLVE, (state.value, seal(body, outcome_place(run_id, turn, key)), run_id, turn, key))
    if cursor.rowcount != 1:
        raise WrongState(run_id, run.status, "told about a step that is no longer in doubt")
    if run.status == RunStatus.SUSPENDED and run.reason == SuspendReason.IN_DOUBT:
        wake(cursor, run)
