"""Who is on a card, and what the viewer may do about it."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils import timezone

from approvals.models import Approval
from approvals.presentation.policy import name_of
from approvals.states import ApprovalStatus


@dataclass(frozen=True, slots=True)
class ClaimLine:
    """`action` is the name of a route, empty when there is nothing to do; `label` its button."""

    text: str = ""
    action: str = ""
    label: str = ""


def claim_line(approval: Approval, viewer: User, *, may_vote: bool) -> ClaimLine:
    if approval.status != ApprovalStatus.PENDING:
        return ClaimLine()
    holder, until = approval.claimed_by, approval.claimed_until
    if holder is not None and until is not None and until > timezone.now():
        if holder == viewer:
            return ClaimLine("You are on it", "approval-release", "Let go")
        return ClaimLine(f"{name_of(holder)} is on it")
    return ClaimLine("", "approval-claim", "Claim") if may_vote else ClaimLine()
