"""Taking a question back: by the agent or by an operator."""

from uuid import UUID

from approvals.errors import NotAllowed, NotEligible
from approvals.models import Approval
from approvals.services.deciding import deciding, retry_deadlocks
from approvals.services.settling import already_decided
from approvals.states import ApprovalKind, ApprovalStatus
from runs.principals import Principal
from runs.queries import may_operate


@retry_deadlocks
def cancel(*, approval_id: UUID, by: Principal, reason: str = "") -> Approval:
    """Cancel an open approval: the agent whose it is, or an operator of its team. Again: nothing changes.

    Raises `NotVisible`, `NotEligible`, `AlreadyDecided`, `NotAllowed` (a question about a call in doubt: its run would
    wait for ever). Each of them is put on record.
    """
    with deciding(approval_id, by=by, attempt="cancel") as case:
        if not may_operate(by, case.approval.run):
            raise NotEligible(approval_id, "Only its agent and the operators of its team can cancel this.")
        if case.approval.status == ApprovalStatus.CANCELLED:
            return case.approval
        if not case.approval.is_open:
            raise already_decided(case)
        if case.approval.kind != ApprovalKind.ACTION:
            why = "A call is in doubt here, and its run waits for an answer: give one, or stop the run."
            raise NotAllowed(approval_id, "cancel", why)
        case.settle(ApprovalStatus.CANCELLED, actor=by.actor, message=reason)
    return case.approval
