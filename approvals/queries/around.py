"""What a reviewer wants to see beside a card: other decisions of the same run, and decisions about the same tool."""

from django.db.models import QuerySet

from approvals.models import Approval
from approvals.queries.visibility import visible_to
from approvals.states import OPEN, ApprovalStatus
from runs.principals import Principal

_SETTLED_BY_PEOPLE = (
    ApprovalStatus.APPROVED,
    ApprovalStatus.EDITED,
    ApprovalStatus.REJECTED,
    ApprovalStatus.RESPONDED,
)


def decided_in_run(approval: Approval, *, viewer: Principal, limit: int) -> list[Approval]:
    """What was settled before in the same run, newest first, as far as the viewer may see it."""
    others = visible_to(viewer).filter(run=approval.run_id, created_at__lte=approval.created_at)
    return _with_decisions(others.exclude(status__in=sorted(OPEN)).exclude(pk=approval.pk), limit)


def similar_decided(approval: Approval, *, viewer: Principal, limit: int) -> list[Approval]:
    """What people decided about the same agent's calls of the same tool in other runs, newest first."""
    others = visible_to(viewer).filter(agent=approval.agent_id, tool=approval.tool, status__in=_SETTLED_BY_PEOPLE)
    return _with_decisions(others.exclude(run=approval.run_id), limit)


def _with_decisions(approvals: QuerySet[Approval], limit: int) -> list[Approval]:
    rows = approvals.select_related("decision__decided_by").order_by("-settled_at", "-id")
    return list(rows[:limit])
