"""Taking a question back: by the agent, by an operator, or because the run is over."""

from uuid import UUID

from approvals import audit
from approvals.audit import EventType
from approvals.errors import NotAllowed, NotEligible
from approvals.models import Approval
from approvals.services.conclusion import conclude
from approvals.services.deciding import deciding, retry_deadlocks
from approvals.services.freshness import SYSTEM
from approvals.services.settling import already_decided
from approvals.states import ApprovalKind, ApprovalStatus
from runs.hooks import Cursor
from runs.principals import Principal
from runs.queries import may_operate

ASKED_OF_RUN = """
SELECT a.id, a.team_id, a.status IN ('pending', 'held'), coalesce(g.status = 'ready', false)
FROM approvals_approval a LEFT JOIN approvals_grant g ON g.approval_id = a.id
WHERE a.run_id = %s ORDER BY a.id FOR NO KEY UPDATE OF a
"""
VOID = "UPDATE approvals_grant SET status = 'void' WHERE approval_id = ANY(%s) AND status = 'ready'"


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


def close_for_run(cursor: Cursor, *, run_id: UUID, reason: str, end: audit.Event | None = None) -> None:
    """A run that ended asks nothing more and may do nothing more: cancel what is open, void what is unspent.

    Call it in the transaction that ends the run, under the run's lock, which keeps everybody else from its grants.
    `end` is the run's own last event, written in the same round trip as what becomes of its grants. Plain SQL.
    """
    cursor.execute(ASKED_OF_RUN, (run_id,))
    asked = cursor.fetchall()
    said_by = end.person_id if end else None
    for approval_id, _, is_open, _ in asked:
        if is_open:
            cancelled = ApprovalStatus.CANCELLED
            conclude(cursor, approval_id=approval_id, outcome=cancelled, actor=SYSTEM, message=reason, said_by=said_by)
    unspent = [(approval_id, team_id) for approval_id, team_id, _, is_ready in asked if is_ready]
    if unspent:
        cursor.execute(VOID, ([approval_id for approval_id, _ in unspent],))
    voided = [
        audit.Event(
            chain=f"approval:{approval_id}",
            type=EventType.GRANT_VOIDED,
            actor=SYSTEM,
            team_id=team_id,
            body={"approval": str(approval_id), "run": str(run_id), "message": reason},
            person_id=said_by,
        )
        for approval_id, team_id in unspent
    ]
    audit.append_all(cursor, [*voided, end] if end else voided)
