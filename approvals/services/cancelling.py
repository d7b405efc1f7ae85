"""Taking a question back: by the agent, by an operator, or because the run is over."""

from uuid import UUID

from approvals import audit
from approvals.audit import EventType
from approvals.errors import NotEligible
from approvals.models import Approval
from approvals.services.conclusion import conclude
from approvals.services.deciding import deciding, retry_deadlocks
from approvals.services.freshness import SYSTEM
from approvals.services.settling import already_decided
from approvals.states import ApprovalStatus
from runs.hooks import Cursor
from runs.principals import Principal
from runs.queries import may_operate

OPEN_OF_RUN = """
SELECT id FROM approvals_approval WHERE run_id = %s AND status IN ('pending', 'held') ORDER BY id FOR NO KEY UPDATE
"""
VOID_OF_RUN = """
UPDATE approvals_grant g SET status = 'void' FROM approvals_approval a
WHERE a.id = g.approval_id AND a.run_id = %s AND g.status = 'ready'
RETURNING g.approval_id, a.team_id
"""


@retry_deadlocks
def cancel(*, approval_id: UUID, by: Principal, reason: str = "") -> Approval:
    """Cancel an open approval: the agent whose it is, or an operator of its team. Again: nothing changes.

    Raises `NotVisible`, `NotEligible`, `AlreadyDecided`. Each of them is put on record.
    """
    with deciding(approval_id, by=by, attempt="cancel") as case:
        if not may_operate(by, case.approval.run):
            raise NotEligible(approval_id, "Only its agent and the operators of its team can cancel this.")
        if case.approval.status == ApprovalStatus.CANCELLED:
            return case.approval
        if not case.approval.is_open:
            raise already_decided(case)
        case.settle(ApprovalStatus.CANCELLED, actor=by.actor, message=reason)
    return case.approval


def close_for_run(cursor: Cursor, *, run_id: UUID, reason: str) -> None:
    """A run that ended asks nothing more and may do nothing more: cancel what is open, void what is unspent.

    Call it in the transaction that ends the run, under the run's lock. Plain SQL.
    """
    cursor.execute(OPEN_OF_RUN, (run_id,))
    for (approval_id,) in cursor.fetchall():
        conclude(cursor, approval_id=approval_id, outcome=ApprovalStatus.CANCELLED, actor=SYSTEM, message=reason)
    cursor.execute(VOID_OF_RUN, (run_id,))
    for approval_id, team_id in sorted(cursor.fetchall()):
        audit.append(
            cursor,
            chain=f"approval:{approval_id}",
            type=EventType.GRANT_VOIDED,
            actor=SYSTEM,
            team_id=team_id,
            body={"approval": str(approval_id), "run": str(run_id), "message": reason},
        )
