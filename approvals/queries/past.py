"""What is open already, and what was decided about the same action before."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings

from approvals.models import Approval
from approvals.states import OPEN, ApprovalStatus
from runs.clock import DatabaseNow


def count_open(*, agent_id: UUID) -> int:
    """How many approvals of the agent are open."""
    return Approval.objects.filter(agent=agent_id, status__in=sorted(OPEN)).count()


def rejected_lately(*, agent_id: UUID, tool: str, args: str) -> Approval | None:
    """The newest rejection of exactly this tool and these arguments for this agent, in the last days."""
    return (
        Approval.objects.filter(
            agent=agent_id,
            tool=tool,
            args=args,
            status=ApprovalStatus.REJECTED,
            settled_at__gt=DatabaseNow() - timedelta(days=settings.FERMATA_REJECTION_MEMORY_DAYS),
        )
        .select_related("decision", "decision__decided_by")
        .order_by("-settled_at")
        .first()
    )
