"""Edits: checked, exact, and never a way around what was reviewed."""

import pytest

from approvals.errors import EditInvalid, StaleReview
from approvals.models import Revision
from approvals.services.voting import vote
from approvals.states import ApprovalStatus
from tests.approvals.scenes import ask, cast, events, gate_answer, open_on, opened, parked_run
from tests.approvals.test_schemas import AMOUNT

pytestmark = pytest.mark.django_db


def edit_errors(approval, reviewer, args):
    with pytest.raises(EditInvalid) as wrong:
        cast(approval, reviewer, "edit", args=args)
    return wrong.value.errors


def test_an_invalid_edit_says_what_is_wrong_and_leaves_the_gate_as_it_was(agent, reviewer):
    """prefect#12279 (C25): invalid input failed the paused flow, and Retry never asked again."""
    approval = opened(agent, args={"amount": 20}, args_schema=AMOUNT)
    for args, error in (
        ('{"amount":"abc"}', ("/amount", "must be of type integer")),
        ('{"amount":12.5}', ("/amount", "must be of type integer")),
        ('{"amount":5000}', ("/amount", "must be at most 1000")),
        ("{}", ("/amount", "is missing")),
        ('{"amount":50,"extra":1}', ("/extra", "is not expected")),
    ):
        assert edit_errors(approval, reviewer, args) == [error]
        approval.refresh_from_db()
        assert (approval.status, approval.revision) == (ApprovalStatus.PENDING, 1)

    assert cast(approval, reviewer, "edit", args='{"amount":50}').status == ApprovalStatus.EDITED
    assert gate_answer(approval)["args"] == '{"amount":50}'
    assert events(approval).count("attempt.refused") == 5


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ('{"amount":NaN}', ("/amount", "is NaN, which is not JSON")),
        ('{"amount":1,"amount":2}', ("", 'has the key "amount" twice')),
        ("null", ("", "must be an object")),
        ("", ("", "is not JSON: Expecting value at line 1, column 1")),
        ("[" * 20_000 + "]" * 20_000, ("", "is nested deeper than 100 levels")),
        ('{"amount": 20}', ("", "are what they were: approve them instead")),
    ],
)
def test_what_is_no_edit_is_refused(agent, reviewer, args, error):
    """django-rest-framework#5235 (C28), technocore-chat#130 (C30)."""
    assert edit_errors(opened(agent, args={"amount": 20}), reviewer, args) == [error]


def test_an_edit_that_only_writes_a_number_otherwise_is_an_edit(agent, reviewer):
    approval = opened(agent, args={"amount": 20})

    assert cast(approval, reviewer, "edit", args='{"amount":20.0}').grant.args == '{"amount":20.0}'
    assert '"value":20.0' in Revision.objects.get(approval=approval, number=2).diff


def test_what_was_reviewed_is_what_is_granted(agent, reviewer):
    """extra#139, pydantic-ai#6968 (C23): approved "reviewed-value", ran "changed-value"."""
    run = parked_run(agent)
    reviewed = open_on(run, ask(args={"message": "reviewed-value"}))[0]
    changed = open_on(run, ask(args={"message": "changed-value"}))[0]

    with pytest.raises(StaleReview):
        vote(approval_id=changed.pk, voter=reviewer, verdict="approve", review=reviewed.review)
    assert changed.supersedes == reviewed
    assert cast(changed, reviewer).grant.args == '{"message":"changed-value"}'
    assert events(reviewed) == ["approval.requested", "approval.superseded"]
