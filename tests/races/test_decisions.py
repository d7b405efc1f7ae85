"""Races about one approval, with real connections and real locks: one outcome stands, and the losers are told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction

from approvals.errors import AlreadyDecided, ApprovalError, ChangeDecided, ChangeStale, DelegationRefused, GrantProblem
from approvals.models import Approval, AuditEvent, AutomaticRule, Decision, Delegation, Grant, Policy, RuleChange
from approvals.services.automatic import apply_rule
from approvals.services.cancelling import cancel
from approvals.services.changes import confirm, withdraw
from approvals.services.delegating import delegate
from approvals.services.grants import spend
from approvals.services.guarding import propose_roles
from approvals.services.settling import settle
from approvals.services.sweeping import sweep
from approvals.services.voting import undo, vote
from approvals.states import SETTLED, ApprovalStatus, GrantStatus
from runs.clock import database_now
from runs.models import Gate, Membership, RunHead
from runs.principals import AgentPrincipal
from runs.services.controlling import cancel_run
from runs.services.locking import lock_run
from tests.approvals.scenes import HOLD, ask, cast, events, gate_answer, open_on, opened, parked_run, policy, run_status

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Call all at once, each on a thread and a connection of its own; results, or domain errors, in order."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            barrier.wait(30)
            return call()
        except ApprovalError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def ballot(approval: Approval, voter: Any, verdict: str = "approve", **fields: Any) -> Callable[[], Approval]:
    return lambda: vote(approval_id=approval.pk, voter=voter, verdict=verdict, review=approval.review, **fields)


def status(approval: Approval) -> str:
    return Approval.objects.values_list("status", flat=True).get(pk=approval.pk)


def assert_one_outcome(approval: Approval) -> None:
    """One decision that says what the approval says, one event of it, one answer of it, a grant exactly where due."""
    outcome = status(approval)
    assert outcome in SETTLED
    assert Decision.objects.get(approval=approval).outcome == outcome
    ends = {"approval.settled", "approval.expired", "approval.cancelled", "approval.superseded"}
    assert sum(event in ends for event in events(approval)) == 1
    answer = gate_answer(approval)
    assert answer is None or answer["outcome"] == outcome
    assert Grant.objects.filter(approval=approval).exists() == (outcome in ("approved", "edited"))


def test_twenty_approve_at_once(agent, person):
    """mastra#20443 (C01): an operator approved a gate twice, and both resumes went on."""
    approval = opened(agent)
    voters = [person(f"person-{n}") for n in range(20)]

    results = at_once(*(ballot(approval, voter) for voter in voters))

    winners = [result for result in results if isinstance(result, Approval)]
    losers = [result for result in results if isinstance(result, AlreadyDecided)]
    assert (len(winners), len(losers)) == (1, 19)
    decision = Decision.objects.get(approval=approval)
    assert {(loser.by, loser.outcome) for loser in losers} == {(decision.decided_by.username, "approved")}
    assert events(approval).count("attempt.refused") == 19
    assert_one_outcome(approval)
    assert RunHead.objects.get(run=approval.run_id).rings == 1


def test_one_person_in_twenty_tabs(agent, reviewer):
    """mastra#20443 (C01)."""
    approval = opened(agent)

    results = at_once(*(ballot(approval, reviewer) for _ in range(20)))

    assert sum(isinstance(result, Approval) for result in results) == 1
    assert approval.votes.count() == 1
    assert_one_outcome(approval)


def test_one_approves_while_another_rejects_fifty_times(agent, person):
    """heym#563 (C02): concurrent reviewers both got success, one overwriting the other."""
    ada, bob = person("ada"), person("bob")
    for n in range(50):
        approval = opened(agent, args={"order": n})
        approved, rejected = at_once(ballot(approval, ada), ballot(approval, bob, "reject"))

        won, lost, outcome = (approved, rejected, "approved")
        if isinstance(rejected, Approval):
            won, lost, outcome = (rejected, approved, "rejected")
        assert won.status == outcome == status(approval)
        assert isinstance(lost, AlreadyDecided)
        assert (lost.by, lost.outcome) == (won.decision.decided_by.username, outcome)
        assert_one_outcome(approval)


def test_a_late_rejection_finds_the_grant_and_changes_nothing(agent, person):
    """teleport#5622 (C02): a request could be denied after its keys had been given out."""
    approval = cast(opened(agent), person("ada"))

    (late,) = at_once(ballot(approval, person("bob"), "reject"))

    assert isinstance(late, AlreadyDecided)
    assert Grant.objects.get(approval=approval).status == GrantStatus.READY
    assert events(approval)[-1] == "attempt.refused"


def test_the_last_two_votes_of_a_quorum_at_once(agent, person):
    """orbit PR#644 (C05): two final votes at once, one resume."""
    policy(agent, "Pairs", (None, 2))
    for n in range(10):
        approval = opened(agent, args={"order": n})
        at_once(*(ballot(approval, person(f"p{n}-{i}")) for i in range(3)))

        assert status(approval) == ApprovalStatus.APPROVED
        assert_one_outcome(approval)
        assert RunHead.objects.get(run=approval.run_id).rings == 1


def test_vote_against_deadline_against_cancellation(agent, reviewer, move_clock):
    """A decision, a cancellation and the deadline race: exactly one stands."""
    for n in range(15):
        approval = opened(agent, args={"order": n}, expires_in=timedelta(hours=1))
        at_once(
            ballot(approval, reviewer),
            lambda: cancel(approval_id=approval.pk, by=AgentPrincipal(agent, None)),  # noqa: B023 - used in this round
            lambda: (move_clock(timedelta(hours=1)), sweep()),
        )
        sweep()

        assert status(approval) in {ApprovalStatus.APPROVED, ApprovalStatus.CANCELLED, ApprovalStatus.EXPIRED}
        assert_one_outcome(approval)


def test_settling_against_taking_back(agent, reviewer, move_clock):
    for n in range(15):
        approval = opened(agent, args={"order": n})
        cast(approval, reviewer, hold=HOLD)
        move_clock(HOLD)
        taken, *_ = at_once(
            lambda: undo(approval_id=approval.pk, voter=reviewer),  # noqa: B023 - used in this round
            lambda: settle(approval_id=approval.pk),  # noqa: B023 - used in this round
            sweep,
        )

        if isinstance(taken, AlreadyDecided):
            assert_one_outcome(approval)
        else:
            assert status(approval) == ApprovalStatus.PENDING
            assert not Decision.objects.filter(approval=approval).exists()


def test_a_vote_against_the_end_of_the_run(agent, reviewer):
    """nimbalyst#1183 (C19)."""
    for n in range(15):
        approval = opened(agent, args={"order": n})
        at_once(ballot(approval, reviewer), lambda: cancel_run(run_id=approval.run_id, actor="system"))  # noqa: B023

        assert run_status(approval) == "cancelled"
        assert_one_outcome(approval)
        grant = Grant.objects.filter(approval=approval).first()
        assert grant is None or grant.status == GrantStatus.VOID


def test_two_gates_of_one_run_decided_at_once_wake_it_once(agent, person):
    """Two approvals of one gate decided at once once put runs to sleep for ever."""
    ada, bob = person("ada"), person("bob")
    for n in range(20):
        run = parked_run(agent, ["a", "b"])
        first, second = open_on(run, ask("a", args={"order": n}), ask("b", args={"order": n}))
        at_once(ballot(first, ada), ballot(second, bob))

        head = RunHead.objects.get(run=run)
        assert (head.status, head.rings) == ("queued", 1)
        assert not Gate.objects.filter(run=run, answer__isnull=True).exists()


def test_a_grant_is_spent_once_whoever_tries(agent, reviewer):
    approval = cast(opened(agent), reviewer)

    def try_to_spend(key: str) -> Callable[[], Any]:
        def spending() -> Any:
            with transaction.atomic(), connection.cursor() as cursor:
                lock_run(cursor, approval.run_id)
                return spend(cursor, approval_id=approval.pk, action=approval.action, spent_key=key)

        return spending

    results = at_once(*(try_to_spend(f"step-{n}") for n in range(10)))

    assert sum(not isinstance(result, GrantProblem) for result in results) == 1
    assert AuditEvent.objects.filter(chain=f"approval:{approval.pk}", type="grant.spent").count() == 1


def test_an_automatic_rule_keeps_its_cap_whoever_asks_at_once(agent, team, person):
    AutomaticRule.objects.create(
        team=team,
        name="Small refunds",
        tools=["refund"],
        window=timedelta(days=365),
        max_count=3,
        ends_at=database_now() + timedelta(days=400),
        created_by=person("amy", "admin"),
    )
    Policy.objects.all().update(is_active=False)
    policy(agent, "Allowing", (None, 1), allow_automatic=True)
    approvals = [opened(agent, args={"order": n}) for n in range(8)]

    results = at_once(*((lambda pk=approval.pk: apply_rule(approval_id=pk)) for approval in approvals))

    assert sum(results) == 3
    assert Approval.objects.filter(status=ApprovalStatus.APPROVED).count() == 3


def test_two_people_who_delegate_to_each_other_at_once(person):
    ada, bob = person("ada"), person("bob")
    now = database_now()

    def lend(giver, taker):
        return lambda: delegate(giver=giver, taker=taker, starts_at=now, ends_at=now + timedelta(days=1), by=giver)

    for _ in range(5):
        results = at_once(lend(ada, bob), lend(bob, ada))
        assert sum(isinstance(result, DelegationRefused) for result in results) == 1
        Delegation.objects.all().delete()


def test_a_change_confirmed_by_two_at_once_or_refused_meanwhile_is_decided_once(team, person):
    amy, ann, abe, bob = (person(name, "admin") for name in ("amy", "ann", "abe", "bob"))
    person("fay", "operator")
    for turn in range(6):
        roles = ["operator", "reviewer"] if turn % 2 == 0 else ["operator"]
        change = propose_roles(team=team, by=amy, person="fay", roles=roles)

        results = at_once(
            lambda pk=change.pk: confirm(change_id=pk, by=ann),
            lambda pk=change.pk: confirm(change_id=pk, by=abe),
            lambda pk=change.pk: withdraw(change_id=pk, by=bob),
        )

        lost = [result for result in results if isinstance(result, ChangeDecided)]
        assert len(lost) == 2
        change.refresh_from_db()
        assert {loser.by for loser in lost} == {change.decided_by.username}
        if change.outcome == "withdrawn":
            confirm(change_id=propose_roles(team=team, by=amy, person="fay", roles=roles).pk, by=ann)


def test_two_proposals_about_one_thing_confirmed_at_once(team, person):
    amy, ann, fay = person("amy", "admin"), person("ann", "admin"), person("fay", "operator")
    for _ in range(5):
        changes = [propose_roles(team=team, by=amy, person="fay", roles=[role]) for role in ("reviewer", "admin")]

        results = at_once(*((lambda pk=change.pk: confirm(change_id=pk, by=ann)) for change in changes))

        assert sum(isinstance(result, ChangeStale) for result in results) == 1
        Membership.objects.filter(user=fay).update(roles=["operator"])
        RuleChange.objects.all().delete()
