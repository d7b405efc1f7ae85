"""Who sees which approvals. `visible_to` is the only way in: for pages, API, events, counts, search and export."""

from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from approvals.models import Approval, Delegation
from approvals.policies.requirements import TEAM, group_pool
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
    return Approval.objects.filter(
        Q(team__in=teams_of(user, CONTENT_ROLES)) | Q(pools__overlap=pools_of(user)) | _lent(user)
    )


def teams_of(user: User, roles: object) -> list[int]:
    """The ids of the teams in which the person has one of `roles`."""
    return sorted(
        Membership.objects.filter(user=user, roles__overlap=list(roles)).values_list("team_id", flat=True)  # type: ignore[call-overload]
    )


def givers_of(user: User) -> list[int]:
    """The ids of those for whom the person may vote now."""
    now = Now()
    return sorted(
        Delegation.objects.filter(taker=user, starts_at__lte=now, ends_at__gt=now, revoked_at__isnull=True)
        .order_by()
        .values_list("giver_id", flat=True)
        .distinct()
    )


def pools_of(user: User) -> list[str]:
    """The group pools that the person is in, and those of the people who delegated to them."""
    people = [user.pk, *givers_of(user)]
    names = Group.objects.filter(user__in=people).values_list("name", flat=True).distinct()
    return sorted(group_pool(name) for name in names)


def _lent(user: User) -> Q:
    """The team seats of those who delegated to the person."""
    teams = Membership.objects.filter(user__in=givers_of(user), roles__contains=[Role.REVIEWER]).values("team")
    return Q(team__in=teams, pools__contains=[TEAM])
