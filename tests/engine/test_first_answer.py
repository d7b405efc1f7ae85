"""`require_approvals(..., until="first")`: one answer is enough, and whatever else was asked there is closed by it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from approvals.errors import AlreadyDecided
from approvals.gates import Proposal, require_approvals
from approvals.models import Approval, AuditEvent, AutomaticRule, Decision, Grant, Policy
from approvals.services.cancelling import cancel
from approvals.services.sweeping import sweep as sweep_approvals
from approvals.services.voting import vote
from runs.authoring import RunContext, workflow
from runs.clock import database_now
from runs.models import Agent, Run, RunHead, Team
from runs.principals import AgentPrincipal
from tests.approvals.scenes import HOLD, events, gate_answer, policy
from tests.engine.conftest import Driver
from tests.engine.deploys import Deployment
from tests.engine.flows import CALLS, SWITCH, pay
from tests.races.test_parking import at_once
from tests.support.pages import browser

WHY = "another question of this gate was answered first"
CLOSED = {"call_1": "cancelled", "call_2": "cancelled", "call_3": "cancelled"}


@pytest.fixture
def parked(driver: Driver) -> Run:
    run = driver.start("test/first-answer")
    assert driver.go_on(run).reason == "approval"
    return run


def statuses(run: Run) -> dict[str, str]:
    return dict(Approval.objects.filter(run=run, successor=None).values_list("key", "status"))


@pytest.mark.parametrize(
    ("verdict", "fields", "outcome", "paid"),
    [
        ("approve", {}, "approved", ["paid 2.00"]),
        ("edit", {"args": '{"amount":"2.50"}'}, "edited", ["paid 2.50"]),
        ("reject", {}, "rejected", []),
        ("respond", {"message": "done by hand"}, "responded", []),
    ],
)
def test_the_first_answer_closes_the_others(
    driver: Driver, parked: Run, verdict: str, fields: dict[str, str], outcome: str, paid: list[str]
) -> None:
    pending = driver.pending(parked)
    driver.decide(pending["call_2"], verdict, **fields)
    assert statuses(parked) == {**CLOSED, "call_2": outcome}
    for key in ("call_1", "call_3"):
        other = pending[key]
        assert (gate_answer(other)["outcome"], gate_answer(other)["message"]) == ("cancelled", WHY)
        assert events(other) == ["approval.requested", "approval.cancelled"]
        event = AuditEvent.objects.get(chain=f"approval:{other.pk}", type="approval.cancelled")
        assert event.actor == "system"
        assert Decision.objects.get(approval=other).message == WHY
        assert not Grant.objects.filter(approval=other).exists()
    head = RunHead.objects.get(run=parked)
    assert (head.status, head.rings) == ("queued", 1)
    assert driver.go_on(parked).status == "completed"
    assert driver.result(parked) == {"paid": paid, **CLOSED, "call_2": outcome}


def test_a_late_vote_is_told_that_it_is_closed(driver: Driver, parked: Run, reviewer: User) -> None:
    pending = driver.pending(parked)
    driver.decide(pending["call_2"])
    with pytest.raises(AlreadyDecided) as late:
        driver.decide(pending["call_1"])
    assert (late.value.by, late.value.outcome) == (None, "cancelled")
    client = browser(reviewer)
    ballot = {"verdict": "approve", "review": pending["call_3"].review}
    response = client.post(f"/approvals/{pending['call_3'].pk}/vote/", ballot)
    assert response.status_code == 409
    assert WHY in response.content.decode()


def test_a_card_says_so_before_it_is_decided(driver: Driver, parked: Run, reviewer: User) -> None:
    client = browser(reviewer)
    page = client.get(f"/approvals/{driver.pending(parked)['call_1'].pk}/").content.decode()
    assert "The first answer at this gate counts: it closes the other questions." in page


def test_votes_of_two_at_once_come_to_one_answer(driver: Driver, person: Callable[..., User]) -> None:
    people = [person(f"person-{n}") for n in range(3)]
    for _ in range(10):
        CALLS.clear()
        run = driver.start("test/first-answer")
        driver.go_on(run)
        votes = [
            partial(vote, approval_id=asked.pk, voter=voter, verdict="approve", review=asked.review)
            for asked, voter in zip(driver.pending(run).values(), people, strict=True)
        ]
        raised = at_once(*votes)
        assert [type(error) for error in raised] == [AlreadyDecided] * 2
        assert sorted(statuses(run).values()) == ["approved", "cancelled", "cancelled"]
        assert RunHead.objects.get(run=run).rings == 1
        assert driver.go_on(run).status == "completed"
        assert sum(CALLS[f"pay {amount}"] for amount in ("1.00", "2.00", "3.00")) == 1


def test_a_held_vote_counts_for_nothing_once_another_question_is_answered(
    driver: Driver, parked: Run, reviewer: User, person: Callable[..., User], move_clock: Callable[[timedelta], None]
) -> None:
    pending = driver.pending(parked)
    held = pending["call_1"]
    vote(approval_id=held.pk, voter=reviewer, verdict="approve", review=held.review, hold=HOLD)
    assert statuses(parked) == {"call_1": "held", "call_2": "pending", "call_3": "pending"}  # a held vote is no answer
    other = pending["call_2"]
    vote(approval_id=other.pk, voter=person("ada"), verdict="reject", review=other.review)
    move_clock(HOLD)
    sweep_approvals()
    assert statuses(parked) == {**CLOSED, "call_2": "rejected"}
    assert not Grant.objects.filter(approval__run=parked).exists()


def test_one_that_is_cancelled_is_no_answer(driver: Driver, parked: Run, agent: Agent) -> None:
    pending = driver.pending(parked)
    cancel(approval_id=pending["call_1"].pk, by=AgentPrincipal(agent, None))
    assert statuses(parked) == {"call_1": "cancelled", "call_2": "pending", "call_3": "pending"}
    driver.decide(pending["call_3"])
    assert statuses(parked) == {**CLOSED, "call_3": "approved"}


def test_the_last_one_that_is_cancelled_lets_the_run_go_on(driver: Driver, parked: Run, agent: Agent) -> None:
    for asked in driver.pending(parked).values():
        cancel(approval_id=asked.pk, by=AgentPrincipal(agent, None))
    assert driver.go_on(parked).status == "completed"
    assert driver.result(parked) == {"paid": [], **CLOSED}


def test_what_a_policy_denies_at_once_is_no_answer(driver: Driver, agent: Agent) -> None:
    deny = '{"properties":{"amount":{"const":"1.00"}},"required":["amount"]}'
    policy(agent, "Never one", (None, 1), condition=deny, deny=True)
    run = driver.start("test/first-answer")
    driver.go_on(run)
    assert statuses(run) == {"call_1": "rejected", "call_2": "pending", "call_3": "pending"}
    driver.decide(driver.pending(run)["call_2"])
    assert statuses(run) == {"call_1": "rejected", "call_2": "approved", "call_3": "cancelled"}
    assert driver.go_on(run).status == "completed"


def test_what_a_policy_denies_later_is_no_answer(driver: Driver, parked: Run, agent: Agent) -> None:
    deny = '{"properties":{"amount":{"const":"1.00"}},"required":["amount"]}'
    pending = driver.pending(parked)
    policy(agent, "Never one", (None, 1), condition=deny, deny=True)
    with pytest.raises(AlreadyDecided):
        driver.decide(pending["call_1"])
    assert statuses(parked) == {"call_1": "rejected", "call_2": "pending", "call_3": "pending"}


def test_an_automatic_rule_answers_too(driver: Driver, agent: Agent, team: Team, person: Callable[..., User]) -> None:
    AutomaticRule.objects.create(
        team=team, name="Small", tools=["test/pay"], window=timedelta(days=1), max_count=5,
        ends_at=database_now() + timedelta(days=1), created_by=person("amy", "admin"),
    )  # fmt: skip
    Policy.objects.all().update(is_active=False)
    policy(agent, "Allowing", (None, 1), allow_automatic=True)
    run = driver.start("test/first-answer")
    driver.go_on(run)
    assert sweep_approvals().ruled == 1
    assert sorted(statuses(run).values()) == ["approved", "cancelled", "cancelled"]
    assert driver.go_on(run).status == "completed"


def test_the_first_deadline_that_passes_ends_the_gate(
    driver: Driver, deployment: Deployment, move_clock: Callable[[timedelta], None]
) -> None:
    name = f"test/deadlines-{uuid4().hex[:8]}"

    def phase(self: Any, run: RunContext) -> object:
        soon = Proposal("soon", pay, {"amount": "1.00"}, title="Pay", expires_in=timedelta(hours=1))
        open_ended = Proposal("open", pay, {"amount": "2.00"}, title="Pay")
        answers = require_approvals(run, [soon, open_ended], until="first")
        return run.complete({key: answer.outcome.value for key, answer in answers.items()})

    workflow(name)(type("Deadlines", (), {"start": phase, "__qualname__": name}))
    run = driver.start(name)
    driver.go_on(run)
    move_clock(timedelta(hours=1))
    assert sweep_approvals().due == 1
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"soon": "expired", "open": "cancelled"}


def test_one_question_that_changes_makes_the_whole_gate_ask_again(driver: Driver, parked: Run) -> None:
    """Otherwise the new question's answer would stand beside the grant of the old gate, and both be performed."""
    driver.decide(driver.pending(parked)["call_1"])
    SWITCH["amount"] = "30.00"
    assert driver.go_on(parked).reason == "approval"
    assert statuses(parked) == {"call_1": "pending", "call_2": "pending", "call_3": "pending"}
    assert list(Grant.objects.filter(approval__run=parked).values_list("status", flat=True)) == ["void"]
    driver.decide(driver.pending(parked)["call_3"])
    assert driver.go_on(parked).status == "completed"
    assert driver.result(parked) == {"paid": ["paid 30.00"], **CLOSED, "call_3": "approved"}
    assert (CALLS["pay 1.00"], CALLS["pay 30.00"]) == (0, 1)


def test_a_grant_that_ran_out_is_asked_about_alone(
    driver: Driver, parked: Run, move_clock: Callable[[timedelta], None]
) -> None:
    approval = driver.pending(parked)["call_2"]
    driver.decide(approval)
    move_clock(approval.grant_life + timedelta(seconds=1))
    assert driver.go_on(parked).reason == "approval"
    assert set(driver.pending(parked)) == {"call_2"}
    driver.decide(driver.pending(parked)["call_2"])
    assert driver.go_on(parked).status == "completed"
    assert driver.result(parked)["paid"] == ["paid 2.00"]


def test_all_is_as_it_was(driver: Driver) -> None:
    run = driver.start("test/gate-group")
    driver.go_on(run)
    driver.decide(driver.pending(run)["call_1"])
    assert set(driver.pending(run)) == {"call_2", "call_3"}


def test_another_word_is_refused(driver: Driver, deployment: Deployment) -> None:
    name = f"test/author-{uuid4().hex[:8]}"

    def phase(self: Any, run: RunContext) -> object:
        return require_approvals(run, [], until="any")  # type: ignore[arg-type]

    workflow(name)(type("Author", (), {"start": phase, "__qualname__": name}))
    run = driver.start(name)
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert run.error == "require_approvals: until= is 'all' or 'first', not 'any'"
