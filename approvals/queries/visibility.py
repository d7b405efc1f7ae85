"""Who sees which approvals. `visible_to` is the only way in: for pages, API, events, counts, search and export."""

from django.db.models import Q, QuerySet

from approvals.models import Approval
from approvals.policies.requirements import TEAM
from approvals.queries.standing import Standing, standing_of
from runs.principals import AgentPrincipal, Principal


def visible_to(principal: Principal) -> QuerySet[Approval]:
    """The approvals that exist for this principal.

    An agent's own. A person's teams', where they review, operate or audit, and those in whose pools they, or somebody
    who delegated to them, may vote. Administrators and superusers see none by being one.
    """
    if isinstance(principal, AgentPrincipal):
        return Approval.objects.filter(agent=principal.agent)
    if not principal.user.is_active:
        return Approval.objects.none()
    return visible_by(standing_of(principal.user))


def listable_by(principal: Principal) -> list[QuerySet[Approval]]:
    """The same in parts, each of which an index has in order."""
    if isinstance(principal, AgentPrincipal) or not principal.user.is_active:
        return [visible_to(principal)]
    standing = standing_of(principal.user)
    return by_team(visible_by(standing), standing)


def by_team(approvals: QuerySet[Approval], standing: Standing) -> list[QuerySet[Approval]]:
    """An index has its rows in order only within a team."""
    return [approvals.filter(team=team) for team in standing.reach]


def visible_by(standing: Standing) -> QuerySet[Approval]:
    """The same, for an active person whose standing is known."""
    visible = Q(team__in=standing.teams)
    if standing.outside:
        visible |= Q(team__in=standing.outside, pools__overlap=standing.group_pools)
    lent = sorted({*standing.reviews} - {*standing.teams})
    if lent:
        visible |= Q(team__in=lent, pools__contains=[TEAM])
    return Approval.objects.filter(visible)
