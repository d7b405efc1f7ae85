"""An approval's state in one or two words."""

from dataclasses import dataclass

from approvals.models import Approval
from approvals.states import ApprovalKind, ApprovalStatus


@dataclass(frozen=True, slots=True)
class Chip:
    """`mark` is a sign of `static/marks.svg`, `tone` a class of the stylesheet."""

    label: str
    mark: str
    tone: str = ""


ACTION = {
    ApprovalStatus.HELD: Chip("Held", "fermata", "tone-hold"),
    ApprovalStatus.APPROVED: Chip("Approved", "approved", "tone-good"),
    ApprovalStatus.EDITED: Chip("Approved, edited", "edited", "tone-good"),
    ApprovalStatus.REJECTED: Chip("Rejected", "failed", "tone-bad"),
    ApprovalStatus.RESPONDED: Chip("Answered", "responded", "tone-accent"),
    ApprovalStatus.EXPIRED: Chip("Expired", "expired"),
    ApprovalStatus.CANCELLED: Chip("Cancelled", "cancelled"),
    ApprovalStatus.SUPERSEDED: Chip("Superseded", "cancelled"),
}
IN_DOUBT = {
    **ACTION,
    ApprovalStatus.PENDING: Chip("In doubt", "warning", "tone-hold"),
    ApprovalStatus.APPROVED: Chip("It did not happen", "running", "tone-accent"),
    ApprovalStatus.RESPONDED: Chip("It happened", "approved", "tone-good"),
    ApprovalStatus.REJECTED: Chip("Run stopped", "failed", "tone-bad"),
}


def chip_of(approval: Approval) -> Chip | None:
    """None for an action that is simply pending."""
    return _chips(approval).get(ApprovalStatus(approval.status))


def settled_chip(approval: Approval) -> Chip:
    """The same for an approval that is not pending."""
    return _chips(approval)[ApprovalStatus(approval.status)]


def _chips(approval: Approval) -> dict[ApprovalStatus, Chip]:
    return IN_DOUBT if approval.kind == ApprovalKind.IN_DOUBT else ACTION
