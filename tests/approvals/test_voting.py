"""One vote: every verdict, at once and held, and what it leaves behind."""

import json
from datetime import timedelta

import pytest

from approvals.errors import AlreadyDecided, NotEligible, StaleReview
from approvals.models import Decision, Grant, Revision
from approvals.services.settling import settle
from approvals.services.voting import undo, vote
from approvals.states import ApprovalStatus, GrantStatus
from tests.approvals.scenes import HOLD, cast, events, gate_answer, opened, run_status

pytestmark = pytest.mark.django_db


def test_an_approval_grants_exactly_what_was_asked(agent, reviewer):
    approval = opened(agent)

    decided = cast(approval, reviewer, message="fine")

    assert decided.status == ApprovalStatus.APPROVED
    assert decided.decision.decided_by == reviewer
    assert decided.grant.status == GrantStatus.READY
    assert (decided.grant.action, decided.grant.args) == (approval.action, approval.args)
    assert events(approval) == ["approval.requested", "vote.cast", "approval.settled"]
    assert gate_answer(approval) == {
        "outcome": "approved",
        "approval": str(approval.pk),
        "message": "fine",
        "args": '{"amount":49,"order":"A-7"}',
        "action": approval.action,
        "by": "reviewer",
    }
    assert run_status(approval) == "queued"


def test_an_edit_grants_the_edited_arguments_and_keeps_the_rest_exactly(agent, reviewer):
    approval = opened(agent, args={"order": "A-7", "amount": 49, "rates": [1.50, 2**90]})

    decided = cast(approval, reviewer, "edit", args=f'{{"order":"A-7","amount":25.00,"rates":[1.5,{2**90}]}}')

    assert decided.status == ApprovalStatus.EDITED
    assert decided.grant.args == f'{{"amount":25.00,"order":"A-7","rates":[1.5,{2**90}]}}'
    assert decided.grant.action == decided.action != approval.action
    revision = Revision.objects.get(approval=approval, number=2)
    assert json.loads(revision.diff) == [{"op": "replace", "path": "/amount", "value": 25.0}]
    assert "25.00" in revision.diff
    assert gate_answer(approval)["args"] == decided.grant.args


def test_a_rejection_grants_nothing(agent, reviewer):
    approval = opened(agent)

    assert cast(approval, reviewer, "reject", message="no").status == ApprovalStatus.REJECTED
    assert not Grant.objects.exists()
    answer = gate_answer(approval)
    assert (answer["outcome"], answer["args"], answer["action"]) == ("rejected", None, None)


def test_an_answer_in_place_of_the_call_grants_nothing(agent, reviewer):
    approval = opened(agent)

    assert cast(approval, reviewer, "respond", message="it was refunded by hand").status == ApprovalStatus.RESPONDED
    assert not Grant.objects.exists()
    assert gate_answer(approval)["message"] == "it was refunded by hand"


def test_a_held_vote_counts_when_its_hold_is_over(agent, reviewer, move_clock):
    approval = opened(agent)

    assert cast(approval, reviewer, hold=HOLD).status == ApprovalStatus.HELD
    assert settle(approval_id=approval.pk).status == ApprovalStatus.HELD
    assert gate_answer(approval) is None
    move_clock(HOLD)
    assert settle(approval_id=approval.pk).status == ApprovalStatus.APPROVED
    assert Decision.objects.get(approval=approval).decided_by == reviewer
    assert run_status(approval) == "queued"


def test_a_held_vote_can_be_taken_back(agent, reviewer, move_clock):
    approval = opened(agent)
    cast(approval, reviewer, hold=HOLD)

    assert undo(approval_id=approval.pk, voter=reviewer).status == ApprovalStatus.PENDING
    move_clock(HOLD)
    assert settle(approval_id=approval.pk).status == ApprovalStatus.PENDING
    assert cast(approval, reviewer, "reject", message="on second thoughts").status == ApprovalStatus.REJECTED


def test_taking_an_edit_back_brings_the_proposal_back(agent, reviewer):
    approval = opened(agent)
    cast(approval, reviewer, "edit", args='{"order":"A-7","amount":1}', hold=HOLD)

    restored = undo(approval_id=approval.pk, voter=reviewer)

    assert (restored.revision, restored.args, restored.requirements) == (3, approval.args, approval.requirements)
    assert cast(approval, reviewer).status == ApprovalStatus.APPROVED


def test_a_settled_vote_cannot_be_taken_back(agent, reviewer):
    approval = opened(agent)
    cast(approval, reviewer)

    with pytest.raises(AlreadyDecided):
        undo(approval_id=approval.pk, voter=reviewer)


def test_the_second_one_is_told_who_was_first(agent, person):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent)
    cast(approval, ada)

    with pytest.raises(AlreadyDecided) as late:
        cast(approval, bob, "reject")

    assert (late.value.by, late.value.outcome) == ("ada", "approved")
    assert late.value.at == Decision.objects.get(approval=approval).at
    assert events(approval)[-1] == "attempt.refused"


def test_a_held_decision_keeps_others_out_and_says_whose_it_is(agent, person):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent)
    cast(approval, ada, hold=HOLD)

    with pytest.raises(AlreadyDecided) as late:
        cast(approval, bob, "reject")

    assert (late.value.by, late.value.outcome) == ("ada", "approved")


def test_a_vote_about_something_else_is_stale_and_shows_the_difference(agent, person):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent, risk="high")
    cast(approval, ada, "edit", args='{"order":"A-7","amount":1}')

    with pytest.raises(StaleReview) as stale:
        vote(approval_id=approval.pk, voter=bob, verdict="approve", review=approval.review)

    approval.refresh_from_db()
    assert stale.value.review == approval.review
    assert stale.value.difference == '[{"op":"replace","path":"/amount","value":1}]'


def test_a_vote_after_the_deadline_finds_it_expired(agent, reviewer, move_clock):
    approval = opened(agent, expires_in=timedelta(hours=1))
    move_clock(timedelta(hours=1))

    with pytest.raises(AlreadyDecided) as late:
        cast(approval, reviewer)

    assert (late.value.by, late.value.outcome) == (None, "expired")
    assert gate_answer(approval)["outcome"] == "expired"


def test_a_held_vote_was_in_time_though_the_deadline_passes_meanwhile(agent, reviewer, move_clock):
    approval = opened(agent, expires_in=timedelta(seconds=5))
    cast(approval, reviewer, hold=HOLD)
    move_clock(HOLD)

    assert settle(approval_id=approval.pk).status == ApprovalStatus.APPROVED


def test_only_people_with_a_seat_may_vote(agent, person):
    operator = person("olga", "operator")
    approval = opened(agent)

    with pytest.raises(NotEligible, match="Only the team's reviewers can decide"):
        cast(approval, operator)

    assert events(approval) == ["approval.requested", "attempt.refused"]
