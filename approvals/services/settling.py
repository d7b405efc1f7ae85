"""From votes to an outcome: the count, the hold, and the settlement that everybody else loses to."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.db import connection, transaction

from approvals import policies
from approvals.audit import EventType
from approvals.errors import AlreadyDecided
from approvals.models import Approval, Decision, Revision, Vote
from approvals.policies import Electorate, Tally
from approvals.services.case import Case, display_name, take
from approvals.services.deciding import retry_deadlocks
from approvals.services.freshness import SYSTEM, freshen
from approvals.states import ApprovalStatus, Verdict

NO_HOLD = timedelta(0)
PROSPECTS = {
    Verdict.APPROVE: ApprovalStatus.APPROVED,
    Verdict.EDIT: ApprovalStatus.EDITED,
    Verdict.REJECT: ApprovalStatus.REJECTED,
    Verdict.RESPOND: ApprovalStatus.RESPONDED,
}


@retry_deadlocks
def settle(*, approval_id: UUID) -> Approval:
    """Settle an approval whose hold is over. Anything else is left as it is. Raises `Approval.DoesNotExist`."""
    run_id = Approval.objects.values_list("run_id", flat=True).get(pk=approval_id)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        case = take(cursor, approval_id=approval_id, run_id=run_id)
        settle_case(case)
    return case.approval


def settle_case(case: Case) -> None:
    """The same for an approval already in hand."""
    freshen(case)
    until = case.approval.held_until
    if case.approval.status == ApprovalStatus.HELD and until is not None and until <= case.now:
        count(case, case.electorate([]), hold=NO_HOLD, actor=SYSTEM)


def count(case: Case, voters: Electorate, *, hold: timedelta, actor: str) -> None:
    """Count the votes of people who have the right today. Decided: settle, or hold that long first. Short: pending.

    `voters` holds the rights of everybody who voted; the requirements are those in force now.
    """
    tally = policies.tally(replace(voters, requirements=case.requirements), case.note_votes())
    reached = _reached(case, tally)
    if reached is None:
        if case.approval.status == ApprovalStatus.HELD:
            case.change(status=ApprovalStatus.PENDING, held_until=None)
            case.record(EventType.APPROVAL_RECOUNTED, actor, {"outcome": "pending"})
        return
    outcome, deciding_vote = reached
    if hold > NO_HOLD:
        until = case.now + hold
        case.change(status=ApprovalStatus.HELD, held_until=until, claimed_by=None, claimed_until=None)
        case.record(EventType.APPROVAL_HELD, actor, {"outcome": outcome.value, "until": until.isoformat()})
    else:
        case.settle(outcome, actor=actor, message=deciding_vote.message, by=deciding_vote.voter)


def already_decided(case: Case) -> AlreadyDecided:
    """Who was first, for somebody who came second."""
    approval = case.approval
    if approval.status == ApprovalStatus.HELD:
        last = case.votes()[-1]
        return AlreadyDecided(approval.pk, display_name(last.voter), PROSPECTS[Verdict(last.verdict)], last.at)
    decision = Decision.objects.select_related("decided_by").get(approval=approval)
    successor = Approval.objects.filter(supersedes=approval).values_list("pk", flat=True).first()
    by = display_name(decision.decided_by) if decision.decided_by else None
    return AlreadyDecided(approval.pk, by, decision.outcome, decision.at, successor)


def _reached(case: Case, tally: Tally) -> tuple[ApprovalStatus, Vote] | None:
    """The outcome that the votes come to, and the vote that tipped it."""
    if len(tally.rejecting) >= case.requirements.rejections:
        return ApprovalStatus.REJECTED, tally.rejecting[-1]
    if tally.is_met:
        proposed = Revision.objects.values_list("args", flat=True).get(approval=case.approval, number=1)
        same = case.approval.args == proposed
        return (ApprovalStatus.APPROVED if same else ApprovalStatus.EDITED), tally.approving[-1]
    if tally.responding:
        return ApprovalStatus.RESPONDED, tally.responding[-1]
    return None
