"""A call whose outcome nobody knows: who may say what happened, and what follows."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from approvals.errors import AlreadyDecided, GrantProblem, NotAllowed, NotEligible, VoteInvalid
from approvals.models import Approval, Grant
from approvals.services.cancelling import cancel
from approvals.services.doubt import resolve_in_doubt
from approvals.services.grants import spend
from approvals.services.voting import vote
from approvals.states import ApprovalStatus, GrantStatus
from runs import bodies
from runs.models import Step
from runs.principals import Person
from runs.states import StepState
from tests.approvals.scenes import KEY, cast, events, in_doubt, opened, run_status

pytestmark = pytest.mark.django_db


@pytest.fixture
def approved(agent, reviewer):
    return cast(opened(agent), reviewer)


def answer(card: Approval, person, what: str, **fields) -> Approval:
    return resolve_in_doubt(approval_id=card.pk, person=person, answer=what, review=card.review, **fields)


def step(card: Approval) -> Step:
    return Step.objects.get(run=card.run_id, turn=0, key=card.key)


def test_the_card_shows_the_granted_action_and_asks_the_same_people(approved):
    card = in_doubt(approved)

    assert (card.tool, card.args, card.requirements) == (approved.tool, approved.args, approved.requirements)
    assert events(card) == ["step.in_doubt"]
    assert Grant.objects.get().status == GrantStatus.IN_DOUBT


def test_it_happened(approved, reviewer):
    card = in_doubt(approved)

    assert answer(card, reviewer, "happened", outcome={"receipt": "R-1"}).status == ApprovalStatus.RESPONDED
    place = bodies.outcome_place(card.run_id, card.turn, card.key)
    assert step(card).state == StepState.DONE
    assert bodies.opened(step(card).outcome, place, what="outcome") == {"receipt": "R-1"}
    grant = Grant.objects.get()
    assert (grant.status, grant.outcome, grant.observed) == (GrantStatus.SUCCEEDED, '{"receipt":"R-1"}', False)
    assert run_status(card) == "queued"
    assert events(card) == ["step.in_doubt", "approval.settled", "step.resolved"]


def test_it_did_not_happen_and_is_made_now_under_the_same_grant(approved, reviewer):
    card = in_doubt(approved)

    assert answer(card, reviewer, "not_happened").status == ApprovalStatus.APPROVED
    assert step(card).state == StepState.NOT_PERFORMED
    assert Grant.objects.get().status == GrantStatus.SPENT
    assert not Grant.objects.filter(approval=card).exists()
    with transaction.atomic(), connection.cursor() as cursor:
        assert spend(cursor, approval_id=approved.pk, action=approved.action, spent_key=KEY).replayed


def test_it_did_not_happen_and_the_grant_ran_out_meanwhile(approved, reviewer, move_clock):
    card = in_doubt(approved)
    move_clock(timedelta(hours=24))

    answer(card, reviewer, "not_happened")

    assert Grant.objects.get().status == GrantStatus.LAPSED
    with pytest.raises(GrantProblem, match="expired"), transaction.atomic(), connection.cursor() as cursor:
        spend(cursor, approval_id=approved.pk, action=approved.action, spent_key=KEY)


def test_it_is_too_early_to_say_that_it_did_not_happen(approved, reviewer, move_clock):
    card = in_doubt(approved, safe_in=timedelta(minutes=5))

    with pytest.raises(NotAllowed, match="may still arrive"):
        answer(card, reviewer, "not_happened")
    move_clock(timedelta(minutes=5))
    assert answer(card, reviewer, "not_happened").status == ApprovalStatus.APPROVED


def test_stopping_cancels_the_run(approved, reviewer):
    card = in_doubt(approved)

    assert answer(card, reviewer, "stop").status == ApprovalStatus.REJECTED
    assert run_status(card) == "cancelled"


def test_it_cannot_be_cancelled_away_from_under_its_run(approved, person):
    """The run would wait for an answer that nobody can give any more."""
    card = in_doubt(approved)

    with pytest.raises(NotAllowed, match="in doubt"):
        cancel(approval_id=card.pk, by=Person(person("ops", "operator")))
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    assert events(card)[-1] == "attempt.refused"


def test_whoever_asked_for_the_run_cannot_say(approved, person):
    ada = person("ada")
    card = in_doubt(approved)
    approved.run.requesters.add(ada)

    with pytest.raises(NotEligible):
        answer(card, ada, "happened", outcome=None)


def test_only_the_first_answer_stands(approved, reviewer, person):
    card = in_doubt(approved)
    answer(card, reviewer, "not_happened")

    with pytest.raises(AlreadyDecided):
        answer(card, person("ada"), "happened", outcome={})


@pytest.mark.parametrize("what", ["approve", "", "happened "])
def test_other_answers_are_refused(approved, reviewer, what):
    with pytest.raises(VoteInvalid):
        answer(in_doubt(approved), reviewer, what)


def test_it_is_no_vote(approved, reviewer):
    card = in_doubt(approved)

    with pytest.raises(NotAllowed):
        vote(approval_id=card.pk, voter=reviewer, verdict="reject", review=card.review)
    with pytest.raises(NotAllowed):
        answer(opened(approved.agent), reviewer, "happened")
