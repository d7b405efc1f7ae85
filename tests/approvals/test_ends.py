"""The ends that no reviewer brings about: deadlines, cancellations, successors, the run's own end."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from approvals.errors import AlreadyDecided, NotEligible
from approvals.models import Approval
from approvals.services.cancelling import cancel
from approvals.services.sweeping import sweep
from approvals.states import ApprovalStatus
from runs.principals import AgentPrincipal, Person
from runs.services.controlling import cancel_run
from runs.services.locking import lock_run
from tests.approvals.scenes import (
    HOLD,
    ask,
    cast,
    close_run,
    events,
    gate_answer,
    in_group,
    open_on,
    opened,
    parked_run,
    policy,
    run_status,
)

pytestmark = pytest.mark.django_db


def status(approval):
    return Approval.objects.values_list("status", flat=True).get(pk=approval.pk)


def test_a_deadline_expires_and_never_approves(agent, move_clock):
    approval = opened(agent, expires_in=timedelta(hours=1))
    assert sweep().due == 0
    move_clock(timedelta(hours=1))

    assert sweep().due == 1
    assert status(approval) == ApprovalStatus.EXPIRED
    assert gate_answer(approval)["outcome"] == "expired"
    assert events(approval) == ["approval.requested", "approval.expired"]
    assert run_status(approval) == "queued"


def test_the_sweeper_settles_what_is_held(agent, reviewer, move_clock):
    approval = opened(agent)
    cast(approval, reviewer, hold=HOLD)
    move_clock(HOLD)

    sweep()

    assert status(approval) == ApprovalStatus.APPROVED


def test_the_sweeper_passes_over_runs_that_somebody_holds(agent, move_clock):
    approval = opened(agent, expires_in=timedelta(hours=1))
    move_clock(timedelta(hours=1))
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            lock_run(cursor, approval.run_id)
            assert sweep().due == 0
            cursor.execute("ROLLBACK")
    finally:
        other.close()
    assert sweep().due == 1


def test_a_policy_escalates_with_the_votes_kept(agent, person, move_clock):
    policy(
        agent,
        "Money",
        ("finance", 2),
        tools=["refund"],
        deadline=timedelta(hours=1),
        escalation='[{"group":"managers","seconds":3600}]',
    )
    ada, mia = in_group(person("ada"), "finance"), in_group(person("mia"), "managers")
    approval = opened(agent)
    cast(approval, ada)
    with pytest.raises(NotEligible):
        cast(approval, in_group(person("max", "operator"), "managers"))
    move_clock(timedelta(hours=1))

    sweep()

    assert status(approval) == ApprovalStatus.PENDING
    assert events(approval)[-1] == "approval.escalated"
    assert cast(approval, mia).status == ApprovalStatus.APPROVED


def test_after_its_last_stage_it_expires(agent, move_clock):
    policy(
        agent,
        "Money",
        ("finance", 1),
        deadline=timedelta(hours=1),
        escalation='[{"group":"managers","seconds":3600}]',
    )
    approval = opened(agent)
    move_clock(timedelta(hours=2))

    sweep()

    assert status(approval) == ApprovalStatus.EXPIRED


def test_the_deadline_that_the_agent_asked_for_ends_it_whatever_the_policy_escalates(agent, move_clock):
    policy(
        agent,
        "Money",
        ("finance", 1),
        deadline=timedelta(hours=1),
        escalation='[{"group":"managers","seconds":36000}]',
    )
    approval = opened(agent, expires_in=timedelta(hours=2))
    move_clock(timedelta(hours=1))
    sweep()
    approval.refresh_from_db()
    assert approval.expires_at == approval.created_at + timedelta(hours=2)
    move_clock(timedelta(hours=1))
    sweep()
    assert status(approval) == ApprovalStatus.EXPIRED


def test_its_agent_cancels_and_may_do_so_twice(agent):
    approval = opened(agent)
    by = AgentPrincipal(agent, None)

    assert cancel(approval_id=approval.pk, by=by, reason="changed plans").status == ApprovalStatus.CANCELLED
    assert cancel(approval_id=approval.pk, by=by).status == ApprovalStatus.CANCELLED
    assert events(approval) == ["approval.requested", "approval.cancelled"]


def test_an_operator_cancels_and_a_reviewer_cannot(agent, person, reviewer):
    approval = opened(agent)

    with pytest.raises(NotEligible):
        cancel(approval_id=approval.pk, by=Person(reviewer))
    assert cancel(approval_id=approval.pk, by=Person(person("olga", "operator"))).status == ApprovalStatus.CANCELLED


def test_what_is_decided_cannot_be_cancelled(agent, reviewer):
    approval = opened(agent)
    cast(approval, reviewer)

    with pytest.raises(AlreadyDecided):
        cancel(approval_id=approval.pk, by=AgentPrincipal(agent, None))


def test_asking_the_same_again_changes_nothing(agent):
    run = parked_run(agent)
    first = open_on(run, ask())[0]

    assert open_on(run, ask())[0] == first
    assert events(first) == ["approval.requested"]


def test_asking_something_else_supersedes_even_what_is_held(agent, person):
    ada, bob = person("ada"), person("bob")
    run = parked_run(agent)
    first = open_on(run, ask())[0]
    cast(first, ada, hold=HOLD)

    second = open_on(run, ask(args={"order": "A-8", "amount": 49}))[0]

    assert second.supersedes == first
    assert status(first) == ApprovalStatus.SUPERSEDED
    with pytest.raises(AlreadyDecided) as late:
        cast(first, bob)
    assert (late.value.outcome, late.value.successor) == ("superseded", second.pk)
    assert gate_answer(second) is None


def test_a_run_that_ends_takes_its_questions_along(agent):
    """nimbalyst#1183, airflow#55053 (C19): a finished run must leave nothing approvable behind."""
    run = parked_run(agent, ["a", "b"])
    approvals = open_on(run, ask("a"), ask("b"))

    cancel_run(run_id=run.pk, actor="system", reason="no longer needed")

    assert {status(approval) for approval in approvals} == {ApprovalStatus.CANCELLED}


def test_an_old_tab_is_told_that_the_run_ended(agent, reviewer):
    """nimbalyst#1183 (C19)."""
    approval = opened(agent)
    cancel_run(run_id=approval.run_id, actor="system")

    with pytest.raises(AlreadyDecided) as late:
        cast(approval, reviewer)

    assert late.value.outcome == "cancelled"
    assert run_status(approval) == "cancelled"


def test_closing_twice_changes_nothing(agent):
    approval = opened(agent)
    for _ in range(2):
        with transaction.atomic(), connection.cursor() as cursor:
            lock_run(cursor, approval.run_id)
            close_run(cursor, approval.run, reason="over")

    assert events(approval) == ["approval.requested", "approval.cancelled"]
