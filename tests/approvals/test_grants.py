"""A grant is spent once, for exactly its action, and in time."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from approvals.errors import GrantProblem, NotEligible
from approvals.models import Grant
from approvals.services.grants import record_outcome, revoke, spend
from approvals.services.sweeping import sweep
from approvals.states import GrantStatus
from runs.principals import AgentPrincipal, Person
from runs.services.locking import lock_run
from tests.approvals.scenes import ask, cast, close_run, events, open_on, opened, policy

pytestmark = pytest.mark.django_db


@pytest.fixture
def approved(agent, reviewer):
    return cast(opened(agent), reviewer)


def spend_now(approval, action=None, key="step-1"):
    with transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, approval.run_id)
        return spend(cursor, approval_id=approval.pk, action=action or approval.action, spent_key=key)


def report_now(approval, *, succeeded=True, outcome='{"receipt":1}', key="step-1"):
    with transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, approval.run_id)
        record_outcome(
            cursor, approval_id=approval.pk, spent_key=key, succeeded=succeeded, outcome=outcome, observed=True
        )


def problem(call, *args, **kwargs):
    with pytest.raises(GrantProblem) as raised:
        call(*args, **kwargs)
    return raised.value.kind


def test_it_is_spent_once(approved):
    assert spend_now(approved).args == approved.args
    assert Grant.objects.get().status == GrantStatus.SPENT
    assert problem(spend_now, approved, key="step-2") == "already_consumed"
    assert events(approved)[-1] == "grant.spent"


def test_the_same_key_again_gets_the_same_answer(approved):
    first, again = spend_now(approved), spend_now(approved)

    assert (first.replayed, again.replayed) == (False, True)
    assert first.args == again.args


def test_it_performs_only_its_own_action(approved):
    assert problem(spend_now, approved, action="0" * 64) == "digest_mismatch"
    assert Grant.objects.get().status == GrantStatus.READY


def test_it_runs_out_even_while_no_sweeper_runs(approved, move_clock):
    move_clock(timedelta(hours=24))

    assert problem(spend_now, approved) == "grant_expired"


def test_what_is_denied_meanwhile_is_not_performed(approved, agent):
    policy(agent, "Stop refunds", tools=["Refund"], deny=True)

    assert problem(spend_now, approved) == "denied"


def test_the_sweeper_lapses_it(approved, move_clock):
    move_clock(timedelta(hours=24))

    assert sweep().lapsed == 1
    assert Grant.objects.get().status == GrantStatus.LAPSED
    assert events(approved)[-1] == "grant.lapsed"
    assert problem(spend_now, approved) == "grant_expired"


def test_an_undecided_approval_has_none(agent):
    assert problem(spend_now, opened(agent)) == "not_approved"


def test_a_reviewer_takes_it_back_before_it_is_used(approved, reviewer):
    assert revoke(approval_id=approved.pk, by=Person(reviewer), reason="wrong order").status == GrantStatus.REVOKED
    assert revoke(approval_id=approved.pk, by=Person(reviewer), reason="again").status == GrantStatus.REVOKED
    assert problem(spend_now, approved) == "revoked"
    assert events(approved).count("grant.revoked") == 1


def test_it_cannot_be_taken_back_once_used(approved, reviewer):
    spend_now(approved)

    assert problem(revoke, approval_id=approved.pk, by=Person(reviewer), reason="late") == "already_consumed"


def test_an_agent_cannot_revoke(approved, agent):
    with pytest.raises(NotEligible):
        revoke(approval_id=approved.pk, by=AgentPrincipal(agent, None), reason="")


def test_an_auditor_cannot_revoke_and_an_operator_can(approved, person):
    with pytest.raises(NotEligible):
        revoke(approval_id=approved.pk, by=Person(person("ann", "auditor")), reason="")
    assert revoke(approval_id=approved.pk, by=Person(person("olga", "operator")), reason="x").status == "revoked"


def test_a_run_that_ended_may_do_nothing_more(approved):
    with transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, approved.run_id)
        close_run(cursor, approved.run, reason="the run was cancelled")

    assert problem(spend_now, approved) == "void"
    assert events(approved)[-1] == "grant.voided"


def test_asking_something_else_voids_what_was_granted_before(approved):
    successor = open_on(approved.run, ask(args={"order": "A-8"}))[0]

    assert successor.supersedes == approved
    assert problem(spend_now, approved) == "void"


def test_an_outcome_is_told_once(approved):
    assert problem(report_now, approved) == "not_consumed"
    spend_now(approved)
    assert problem(report_now, approved, key="step-2") == "already_consumed"
    report_now(approved)
    report_now(approved)
    assert problem(report_now, approved, succeeded=False) == "outcome_conflict"
    assert problem(report_now, approved, outcome='{"receipt":2}') == "outcome_conflict"
    grant = Grant.objects.get()
    assert (grant.status, grant.outcome, grant.observed) == (GrantStatus.SUCCEEDED, '{"receipt":1}', True)
    assert events(approved).count("grant.outcome") == 1
