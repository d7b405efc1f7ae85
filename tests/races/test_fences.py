"""Every statement of the engine against an epoch that has moved on, a lease that is over, a run that was cancelled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from checkpoints import codec
from checkpoints.store import load, prepare
from runs.bodies import opened, outcome_place
from runs.engine.connection import engine_connection
from runs.engine.executor import CLAIM_ONE, _claim, execute
from runs.engine.finishing import Ending, finish
from runs.engine.gates import Draft, Gates, Question
from runs.engine.heartbeat import EXTEND
from runs.engine.ownership import Ownership
from runs.engine.riders import ReadOutcome
from runs.engine.signals import LostRun
from runs.engine.statements import Intent
from runs.engine.turn import Turn
from runs.models import Agent, Run, RunHead, StepEvidence
from runs.services.controlling import cancel_run
from runs.services.starting import start_run
from runs.services.sweeping import sweep
from tests.engine import flows  # noqa: F401 - registers the workflows
from tests.support.cleaning import LEFT_ALONE, TABLES


class Nobody:
    def prepare(self, keys: Any) -> None:
        pass

    def open(self, cursor: Any, opened: Any, snapshot_digest: bytes) -> None:
        raise AssertionError("nothing may be opened for a run that is lost")


def claimed(agent: Agent) -> Ownership:
    """A run with a recorded intent, in the hands of a worker."""
    run = start_run(agent=agent, workflow="test/steps", input=None)
    RunHead.objects.filter(run=run).update(status="running", epoch=1, lease="2100-01-01T00:00:00Z")
    own = Ownership(connection=engine_connection(), run_id=run.id, epoch=1, head_seq=0, build="test")
    own.record_intent(intent("begun"))
    return own


def intent(key: str) -> Intent:
    return Intent(
        turn=0,
        key=key,
        ordinal=0,
        phase="start",
        tool="test/send",
        effect="keyed",
        args_hash=bytes(32),
        generation=0,
        grant_id=None,
        deadline=timedelta(seconds=5),
    )


def checkpoint(own: Ownership) -> Any:
    with own.connection.transaction() as cursor:
        _, head = load(cursor, run_id=own.run_id)

    return prepare(
        run_id=own.run_id,
        head=head,
        seq=1,
        epoch=own.epoch,
        workflow="test/steps",
        schema=1,
        phase="act",
        turn=1,
        reason="phase",
        state={"stale": True},
        new_history=(),
        position=None,
        pending=[],
        limit=10**6,
    )


def gates(own: Ownership) -> Gates:
    turn = Turn.load(own.connection, run_id=own.run_id, number=0, phase="start")
    turn.require_all_met = lambda *, before: None  # type: ignore[method-assign]
    return Gates(own=own, turn=turn, draft=lambda: Draft(seq=0, body=codec.encode({}), digest=bytes(32)))


def deferred(own: Ownership) -> Ownership:
    """A worker that skipped a boundary."""
    prepared = checkpoint(own)
    own.defer(lambda: own.save_checkpoint(prepared, turn=1, phase="act", schema=1, left_phase=None))
    return own


def saved(own: Ownership) -> Ownership:
    """A worker that has sent a checkpoint."""
    own.save_checkpoint(checkpoint(own), turn=1, phase="act", schema=1, left_phase="start")
    return own


STATEMENTS: dict[str, Callable[[Ownership], Any]] = {
    "intent": lambda own: own.record_intent(intent("new")),
    "intent with a grant": lambda own: own.record_intent(intent("new"), spend=lambda cursor: None),
    "intent again": lambda own: own.record_intent(intent("begun")),
    "reads": lambda own: own.record_reads(turn=0, phase="start"),
    "checkpoint": lambda own: saved(own).anchor(),
    "deferred checkpoint": lambda own: deferred(own).anchor(),
    "leave after a deferred checkpoint": lambda own: deferred(own).leave(status="queued"),
    "leave": lambda own: own.leave(status="queued"),
    "block": lambda own: own.leave(status="blocked", detail="stale"),
    "gate": lambda own: gates(own).ask([Question("gate", bytes(32))], Nobody()),
    "timer": lambda own: gates(own).sleep("sleep", own.connection.execute("SELECT now()").fetchone()[0]),
    "event": lambda own: gates(own).wait_for_event("event"),
    "complete": lambda own: finish(
        own, Ending.completed(codec.encode("stale")), checkpoint=checkpoint(own), turn=0, phase="start"
    ),
    "fail": lambda own: finish(own, Ending.failed("Stale", "stale", "")),
    "refence": lambda own: own.refence(),
}


def bump_epoch(own: Ownership) -> None:
    RunHead.objects.filter(run_id=own.run_id).update(epoch=2)


def end_lease(own: Ownership) -> None:
    # tensorzero/durable#68
    RunHead.objects.filter(run_id=own.run_id).update(lease="2000-01-01T00:00:00Z")


def take_away(own: Ownership) -> None:
    # aegra#547: the same worker's name again, another epoch
    end_lease(own)
    sweep()
    RunHead.objects.filter(run_id=own.run_id).update(status="running", epoch=2, lease="2100-01-01T00:00:00Z")


def cancel(own: Ownership) -> None:
    cancel_run(run_id=own.run_id, actor="system")


def everything() -> dict[str, list[str]]:
    """Every row of every table."""
    rows: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            if table not in LEFT_ALONE and not table.startswith("seed_"):
                cursor.execute(f'SELECT t::text FROM "{table}" t ORDER BY 1')
                rows[table] = [text for (text,) in cursor.fetchall()]
    return rows


LOSSES = (bump_epoch, end_lease, take_away, cancel)
# With its lease over and nobody else's claim, a worker may still give its run up, or take it up again.
HARMLESS = {("leave", end_lease), ("block", end_lease), ("refence", end_lease)}


@pytest.mark.parametrize(("statement", "lose"), [p for p in product(STATEMENTS, LOSSES) if p not in HARMLESS])
def test_a_worker_that_lost_its_run_changes_nothing(
    transactional_db: None, agent: Agent, statement: str, lose: Callable[[Ownership], None]
) -> None:
    own = claimed(agent)
    own.riders.reads.append(ReadOutcome("read", 1, "test/look", bytes(32), "done", codec.encode(1)))
    lose(own)
    before = everything()
    with pytest.raises(LostRun):
        STATEMENTS[statement](own)
    assert everything() == before
    assert own.lost


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_worker_that_has_its_run_changes_something(transactional_db: None, agent: Agent, statement: str) -> None:
    """The same statements, to see that the test above can fail."""
    own = claimed(agent)
    own.riders.reads.append(ReadOutcome("read", 1, "test/look", bytes(32), "done", codec.encode(1)))
    before = everything()
    with contextlib.suppress(BaseException):
        STATEMENTS[statement](own)
    if statement not in {"gate"}:  # its opener refuses to open anything here
        assert everything() != before
    assert not own.lost


@pytest.mark.parametrize("lose", [bump_epoch, take_away, cancel])
def test_a_receipt_that_comes_too_late_is_kept_as_evidence(
    transactional_db: None, agent: Agent, lose: Callable[[Ownership], None]
) -> None:
    own = claimed(agent)
    lose(own)
    before = everything()
    with pytest.raises(LostRun):
        own.record_outcome(turn=0, key="begun", state="done", outcome=codec.encode("receipt"))
    after = everything()
    assert len(after.pop("runs_step_evidence")) == 1
    before.pop("runs_step_evidence")
    assert after == before
    place = outcome_place(own.run_id, 0, "begun")
    assert opened(StepEvidence.objects.get().outcome, place, what="receipt") == "receipt"


def test_a_receipt_is_recorded_when_only_the_lease_has_run_out(transactional_db: None, agent: Agent) -> None:
    own = claimed(agent)
    end_lease(own)
    own.record_outcome(turn=0, key="begun", state="done", outcome=codec.encode("receipt"))
    assert not StepEvidence.objects.exists()


def test_a_second_claim_of_the_same_message_claims_nothing(transactional_db: None, agent: Agent) -> None:
    # viewflow#176, dbos-transact-py#742
    own = claimed(agent)
    before = everything()
    assert execute(own.run_id, worker="another") is False
    assert execute(uuid4(), worker="another") is False
    assert everything() == before


def test_a_draining_worker_of_the_same_name_neither_takes_the_run_again_nor_strands_it(
    transactional_db: None, agent: Agent
) -> None:
    """dbos-transact-py#804: a deploy replaces `pod-0` by `pod-0`, and the old one is still on its way out."""
    run = start_run(agent=agent, workflow="test/steps", input=None)
    claim = _claim(engine_connection(), CLAIM_ONE, worker="pod-0:1", run=run.id)
    assert claim is not None
    old = Ownership(connection=engine_connection(), run_id=run.id, epoch=claim.epoch, head_seq=0, build="test")
    RunHead.objects.filter(run=run).update(draining=True)  # as its heartbeat said, before it fell silent
    end_lease(old)
    assert sweep().taken_back == 1
    new = _claim(engine_connection(), CLAIM_ONE, worker="pod-0:1", run=run.id)
    assert new is not None
    before = everything()

    with connection.cursor() as cursor:
        cursor.execute(EXTEND, (timedelta(minutes=5), True, run.id, old.epoch))
    for hand_back in (lambda: old.leave(status="queued"), lambda: finish(old, Ending.failed("Stale", "stale", ""))):
        with pytest.raises(LostRun):
            hand_back()
    assert execute(run.id, worker="pod-0:1") is False
    assert sweep().taken_back == 0
    after = everything()
    del before["runs_build"], after["runs_build"]  # the sweeper says that it lives
    assert after == before
    head = RunHead.objects.get(run=run)
    assert (head.epoch, head.draining, head.crashes) == (2, False, 0)

    Ownership(connection=engine_connection(), run_id=run.id, epoch=2, head_seq=0, build="test").leave(status="queued")
    assert execute(run.id, worker="pod-0:1")
    assert RunHead.objects.get(run=run).status == "completed"


def test_a_finished_run_stays_finished(transactional_db: None, agent: Agent) -> None:
    # django-ox#16
    own = claimed(agent)
    finish(own, Ending.completed(codec.encode(1)))
    before = everything()
    late = Ownership(connection=engine_connection(), run_id=own.run_id, epoch=1, head_seq=0, build="test")
    with pytest.raises(LostRun):
        late.leave(status="queued")
    assert sweep().taken_back == 0
    after = everything()
    del before["runs_build"], after["runs_build"]  # the sweeper says that it lives
    assert after == before
    assert Run.objects.get(id=own.run_id).head.status == "completed"
