"""An ask is opened under what is so at that moment, whatever comes between its preparation and its transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

import approvals.gates
import approvals.services.suspending
from approvals.models import Approval
from approvals.policies import Requirements
from approvals.policies.drafts import PolicyDraft
from approvals.services.asking import prepare
from approvals.services.changes import confirm
from approvals.services.opening import open_approvals
from approvals.services.policymaking import propose_policy, tighten_open
from approvals.states import ApprovalStatus
from runs.engine.connection import engine_connection
from runs.models import Agent, Gate, Team
from runs.services.locking import lock_run
from tests.approvals.scenes import SNAPSHOT, ask, cast, facts, in_group, opened, parked_run
from tests.engine.conftest import Driver
from tests.engine.flows import CALLS
from tests.support.api import as_agent, suspension
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
HOLD_GATE = "SELECT 1 FROM runs_gate WHERE run_id = %s FOR UPDATE"
ARGS = {"order": "A-7"}


def elsewhere(act: Callable[[], object]) -> Thread:
    """`act`, begun on connections of its own."""

    def run() -> None:
        try:
            act()
        finally:
            connection.close()
            engine_connection().close()

    thread = Thread(target=run)
    thread.start()
    return thread


def waits_or_is_done(thread: Thread, *, beside: int = 0) -> bool:
    """Whether it is over, or waits for a lock; `beside`: how many others do."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # inside a transaction the first look would stay
        cursor.execute(WAITING)
        return cursor.fetchone()[0] > beside or not thread.is_alive()


@pytest.fixture
def tightened(team: Team, person: Callable[..., User]) -> Callable[..., None]:
    """Another administrator confirms a stricter policy, and what is open follows."""
    amy, ann = person("amy", "admin"), person("ann", "admin")
    in_group(person("fay", "operator"), "finance")

    def tighten(**fields: Any) -> None:
        draft = PolicyDraft(name="Money", quorum=({"group": "finance", "count": 1},), **fields)
        confirm(change_id=propose_policy(team=team, by=amy, draft=draft).pk, by=ann)
        tighten_open(team_id=team.pk)

    return tighten


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Let something happen, on another connection, when an ask has just been prepared for the first time."""

    def arrange(act: Callable[[], object]) -> None:
        acts = [act]

        def prepared(*args: Any, **fields: Any) -> Any:
            found = prepare(*args, **fields)
            while acts:
                elsewhere(acts.pop()).join()
            return found

        for module in (approvals.gates, approvals.services.suspending):
            monkeypatch.setattr(module, "prepare", prepared)

    return arrange


@pytest.mark.parametrize("key", [{}, {"Idempotency_Key": "once"}])
def test_a_policy_that_comes_between_applies_to_what_is_posted(agent: Agent, between, tightened, key) -> None:
    between(tightened)
    response = as_agent(agent).post("/suspensions", suspension(args=ARGS), **key)
    assert response.status_code == 201, response.content
    assert Approval.objects.get().pools == ["group:finance", "team"]


def test_a_policy_that_comes_between_applies_to_what_a_workflow_asks(agent, reviewer, between, tightened) -> None:
    CALLS.clear()
    driver = Driver(agent, reviewer)
    run = driver.start("test/gate-group")
    between(tightened)
    driver.go_on(run)
    asked = list(Approval.objects.filter(run=run))
    assert len(asked) == 3
    assert {tuple(approval.pools) for approval in asked} == {("group:finance", "team")}


def test_what_a_policy_denies_that_comes_between_is_denied(agent: Agent, between, tightened) -> None:
    between(lambda: tightened(deny=True))
    as_agent(agent).post("/suspensions", suspension(args=ARGS))
    assert Approval.objects.get().status == ApprovalStatus.REJECTED


def test_a_policy_waits_for_what_is_just_being_opened_and_finds_it(agent: Agent, tightened) -> None:
    run, question = parked_run(agent), ask()
    prepared = prepare([question], run=facts(run))
    with transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, run.pk)
        open_approvals(cursor, prepared, run_id=run.pk, turn=0, snapshot_digest=SNAPSHOT)
        change = elsewhere(tightened)
        until(lambda: waits_or_is_done(change), what="the policy waits")
    change.join()
    assert Approval.objects.get().pools == ["group:finance", "team"]


def test_a_rejection_that_comes_between_asks_for_a_second_approver(agent: Agent, reviewer: User, between) -> None:
    earlier = opened(agent, args=ARGS)
    between(lambda: cast(earlier, reviewer, "reject"))
    as_agent(agent).post("/suspensions", suspension(args=ARGS))
    asked = Approval.objects.exclude(pk=earlier.pk).get()
    assert Requirements.from_text(asked.requirements).approvers == 2


def test_an_ask_waits_for_a_rejection_that_is_just_being_committed(agent: Agent, reviewer: User) -> None:
    earlier = opened(agent, args=ARGS)
    with gate_held(earlier):
        rejection = elsewhere(lambda: cast(earlier, reviewer, "reject"))
        until(lambda: waits_or_is_done(rejection), what="the rejection is written, and not committed")
        opening = elsewhere(lambda: as_agent(agent).post("/suspensions", suspension(args=ARGS)))
        until(lambda: waits_or_is_done(opening, beside=1), what="the ask waits")
    rejection.join()
    opening.join()
    asked = Approval.objects.exclude(pk=earlier.pk).get()
    assert Requirements.from_text(asked.requirements).approvers == 2


@pytest.mark.parametrize("days", [0, 7])
def test_what_was_rejected_long_before_does_not_keep_it_from_being_opened(
    agent: Agent, reviewer: User, settings, days: int
) -> None:
    settings.FERMATA_REJECTION_MEMORY_DAYS = days
    cast(opened(agent, args=ARGS), reviewer, "reject")
    asked = opened(agent, args=ARGS)
    assert Requirements.from_text(asked.requirements).approvers == (2 if days else 1)


@contextmanager
def gate_held(approval: Approval) -> Iterator[None]:
    """Nobody answers the approval's gate meanwhile, which is what comes after its decision is written."""
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with other.cursor() as cursor:
            cursor.execute(HOLD_GATE, [approval.run_id])
        assert Gate.objects.filter(run=approval.run_id).exists()
        yield
        other.commit()
    finally:
        other.close()
