"""Who sees which approvals. `visible_to` is the only way in: for pages, API, events, counts, search and export."""

from collections.abc import Sequence

from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet

from approvals.models import Approval, Delegation
from approvals.policies.requirements import TEAM, group_pool
from runs.clock import DatabaseNow
from runs.models import Membership, Role
from runs.principals import AgentPrincipal, Principal
from runs.queries import CONTENT_ROLES


def visible_to(principal: Principal) -> QuerySet[Approval]:
    """The approvals that exist for this principal.

    An agent's own. A person's teams', where they review, operate or audit, and those in whose pools they, or somebody
    who delegated to them, may vote. Administrators and superusers see none by being one.
    """
    if isinstance(principal, AgentPrincipal):
        return Approval.objects.filter(agent=principal.agent)
    user = principal.user
    if not user.is_active:
        return Approval.objects.none()
    teams = Membership.objects.filter(user=user, roles__overlap=list(CONTENT_ROLES)).values_list("team_id", flat=True)
    givers = givers_of(user)
    visible = Q(team__in=sorted(teams)) | Q(pools__overlap=group_pools_of([user.pk, *givers]))
    if givers:
        lent = Membership.objects.filter(user__in=givers, roles__contains=[Role.REVIEWER]).values("team")
        visible |= Q(team__in=lent, pools__contains=[TEAM])
    return Approval.objects.filter(visible)


def givers_of(user: User) -> list[int]:
    """The ids of those for whom the person may vote now."""
    now = DatabaseNow()
    return sorted(
        Delegation.objects.filter(taker=user, starts_at__lte=now, ends_at__gt=now, revoked_at__isnull=True)
        .order_by()
        .values_list("giver_id", flat=True)
        .distinct()
    )


def pools_of(user: User) -> list[str]:
    """The group pools that the person is in, and those of the people who delegated to them."""
    return group_pools_of([user.pk, *givers_of(user)])


def group_pools_of(people: Sequence[int]) -> list[str]:
    """The group pools that these people (ids) are in."""
    names = Group.objects.filter(user__in=people).values_list("name", flat=True).distinct()
    return sorted(group_pool(name) for name in names)
