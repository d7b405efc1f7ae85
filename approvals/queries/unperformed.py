"""What was approved and has not been performed."""

from django.db.models import QuerySet

from approvals.models import Approval
from approvals.states import GrantStatus


def unperformed(visible: QuerySet[Approval]) -> QuerySet[Approval]:
    """Those of `visible` whose grant is unspent; what ends first stands first."""
    waiting = visible.filter(grant__status=GrantStatus.READY)
    return waiting.select_related("grant", "agent", "run__head", "decision__decided_by").order_by(
        "grant__expires_at", "pk"
    )
