"""Who is in a team, in which groups, and which agents and keys it has: for its administrators."""

from django.contrib.auth.models import Group, User
from django.db.models import Prefetch, Q, QuerySet

from approvals.policies.matching import rules_of
from runs.clock import DatabaseNow
from runs.models import Agent, AgentKey, Membership, Team
from runs.principals import Person


def teams_of(person: Person) -> QuerySet[Team]:
    """The teams that exist for the person: those that they have a role in."""
    return Team.objects.filter(pk__in=Membership.objects.filter(user=person.user).values("team"))


def members_of(team: Team) -> QuerySet[Membership]:
    return (
        Membership.objects.filter(team=team)
        .select_related("user")
        .prefetch_related("user__groups")
        .order_by("-user__is_active", "user__username")
    )


def groups_around(team: Team) -> tuple[QuerySet[Group], frozenset[str]]:
    """The groups that the team's people are in or its policies name, and the names of those that decide in it."""
    deciding = groups_deciding_in(team.pk)
    inside = Membership.objects.filter(team=team).values("user")
    groups = Group.objects.filter(Q(name__in=deciding) | Q(pk__in=Group.objects.filter(user__in=inside)))
    people = User.objects.filter(is_active=True).order_by("username")
    return groups.order_by("name").prefetch_related(Prefetch("user_set", people, to_attr="people")), deciding


def groups_deciding_in(team_id: int) -> frozenset[str]:
    """The names of the groups that the team's policies in force name."""
    rules = rules_of(team_id)
    pools = {pool for rule in rules for seat in rule.seats for pool in seat.pools}
    pools |= {stage.pool for rule in rules for stage in rule.stages}
    return frozenset(pool.removeprefix("group:") for pool in pools if pool.startswith("group:"))


def agents_of(team: Team) -> QuerySet[Agent]:
    """With their owners, the keys that work, and the webhook."""
    living = AgentKey.objects.filter(
        Q(expires_at__isnull=True) | Q(expires_at__gt=DatabaseNow()), revoked_at__isnull=True
    )
    keys = Prefetch("keys", living.order_by("-created_at", "-pk"), to_attr="living_keys")
    return Agent.objects.filter(team=team).select_related("webhook").prefetch_related("owners", keys)
