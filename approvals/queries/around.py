"""What a reviewer wants to see beside a card: cards just like it, and what was decided in its run and like it."""

from django.db.models import Q, QuerySet

from approvals.models import Approval
from approvals.policies import Requirements
from approvals.queries.ahead import first_that, look
from approvals.queries.standing import standing_of
from approvals.queries.tabs import Tab, in_tab
from approvals.queries.visibility import visible_to
from approvals.states import OPEN, ApprovalKind, ApprovalStatus, Risk
from runs.principals import Person, Principal

_SETTLED_BY_PEOPLE = (
    ApprovalStatus.APPROVED,
    ApprovalStatus.EDITED,
    ApprovalStatus.REJECTED,
    ApprovalStatus.RESPONDED,
)


def alike(approval: Approval, *, viewer: Person, limit: int) -> list[Approval]:
    """The cards that the viewer may decide together with this one, which is the first of them: the same agent's calls
    of the same tool, under the very same requirements. Empty where that is not open to anybody: high risk, or when each
    decision must be confirmed."""
    standing = standing_of(viewer.user)
    alike = _likeness(approval)
    if alike is None:
        return []
    of_agent = Approval.objects.filter(agent=approval.agent_id)
    mine, unclaimed = (in_tab(standing, tab) for tab in (Tab.MINE, Tab.UNCLAIMED))
    own = first_that(alike & Q(agent=approval.agent_id), mine, limit)
    ahead, are_all = look(alike, of_agent.filter(status__in=sorted(OPEN)))
    theirs = [
        card for part in mine for card in (like(approval, part) if own is None else part.filter(pk__in=own))[:limit]
    ]
    for part in unclaimed:
        found = list(part.filter(pk__in=ahead)[:limit])
        theirs += found if are_all or len(found) == limit else like(approval, part)[:limit]
    theirs.sort(key=lambda card: (card != approval, card.created_at))
    return theirs[:limit] if theirs[:1] == [approval] else []


def like(approval: Approval, approvals: QuerySet[Approval]) -> QuerySet[Approval]:
    """Those of `approvals` that may be decided together with this one."""
    alike = _likeness(approval)
    return approvals.none() if alike is None else approvals.filter(alike, agent=approval.agent_id)


def _likeness(approval: Approval) -> Q | None:
    """Whether a card of the same agent is one of these; None: no other may be."""
    requirements = Requirements.from_text(approval.requirements)
    if approval.kind != ApprovalKind.ACTION or requirements.risk == Risk.HIGH or requirements.reauthentication:
        return None
    return Q(kind=approval.kind, tool=approval.tool, requirements=approval.requirements)


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
