"""Claims: "I am on it". Soft: a claim never keeps anybody from voting, and runs out by itself."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User

from approvals.audit import EventType
from approvals.errors import ClaimedByOther, NotEligible
from approvals.models import Approval
from approvals.services.case import Case, display_name
from approvals.services.deciding import deciding, retry_deadlocks
from approvals.services.settling import already_decided
from approvals.states import ApprovalStatus
from runs.principals import Person


@retry_deadlocks
def claim(*, approval_id: UUID, person: User) -> Approval:
    """Claim a pending approval, or hold on to it longer.

    Raises `NotVisible`, `NotEligible`, `AlreadyDecided`, `ClaimedByOther`. Each of them is put on record.
    """
    by = Person(person)
    with deciding(approval_id, by=by, attempt="claim") as case:
        if why := case.electorate([person.pk]).why_not(person.pk):
            raise NotEligible(approval_id, why)
        if case.approval.status != ApprovalStatus.PENDING:
            raise already_decided(case)
        _check_free(case, person)
        until = case.now + timedelta(seconds=settings.FERMATA_CLAIM_SECONDS)
        case.change(claimed_by=person, claimed_until=until)
        case.record(EventType.APPROVAL_CLAIMED, by.actor, {"person": person.pk, "until": until.isoformat()})
    return case.approval


@retry_deadlocks
def release(*, approval_id: UUID, person: User) -> Approval:
    """Give a claim back; without one, nothing changes. Raises `NotVisible`, `ClaimedByOther`."""
    by = Person(person)
    with deciding(approval_id, by=by, attempt="release") as case:
        _check_free(case, person)
        if case.approval.claimed_by_id is not None:
            case.change(claimed_by=None, claimed_until=None)
            case.record(EventType.APPROVAL_RELEASED, by.actor, {"person": person.pk})
    return case.approval


def _check_free(case: Case, person: User) -> None:
    holder, until = case.approval.claimed_by, case.approval.claimed_until
    if holder is not None and until is not None and holder != person and until > case.now:
        raise ClaimedByOther(case.approval.pk, display_name(holder), until)
