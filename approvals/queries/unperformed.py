"""What was approved and has not been performed."""

from django.db.models import QuerySet

from approvals.models import Approval
from approvals.queries.visibility import visible_to
from approvals.states import GrantStatus
from runs.principals import Principal


def unperformed(principal: Principal) -> QuerySet[Approval]:
    """The approvals, of those that exist for this principal, whose grant is unspent; what ends first stands first."""
    waiting = visible_to(principal).filter(grant__status=GrantStatus.READY)
    return waiting.select_related("grant", "agent", "run__head", "decision__decided_by").order_by(
        "grant__expires_at", "pk"
    )
