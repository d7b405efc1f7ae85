"""What a person is, as far as lists of approvals need to know: read once, so that the lists are plain index scans."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Group, User
from django.db.models import Q, QuerySet

from approvals import canonical
from approvals.models import Delegation, PolicyVersion
from approvals.policies.requirements import group_pool
from runs.clock import DatabaseNow
from runs.models import Agent, AgentKey, Membership, Role
from runs.queries import CONTENT_ROLES


@dataclass(frozen=True)
class Standing:
    """Ids and names. `people`: the person, and those for whom they may vote now.

    `teams`: where they may read; `reviews`: where one of `people` reviews; `groups`: the groups of `people`; `outside`:
    other teams, whose policies name one of these groups; `agents` and `keys`: what `people` own or made.
    """

    person: int
    people: tuple[int, ...]
    teams: tuple[int, ...]
    reviews: tuple[int, ...]
    groups: tuple[str, ...]
    outside: tuple[int, ...]
    agents: tuple[UUID, ...]
    keys: tuple[int, ...]

    @property
    def reach(self) -> tuple[int, ...]:
        """The teams whose cards the person may see, all or some of them."""
        return tuple(sorted({*self.teams, *self.reviews, *self.outside}))

    @property
    def group_pools(self) -> list[str]:
        return [group_pool(name) for name in self.groups]


def standing_of(user: User) -> Standing:
    people = (user.pk, *givers_of(user))
    memberships = Membership.objects.filter(user__in=people)
    teams = _sorted(memberships.filter(user=user, roles__overlap=list(CONTENT_ROLES)), "team_id")
    groups = _sorted(Group.objects.filter(user__in=people), "name")
    return Standing(
        person=user.pk,
        people=people,
        teams=teams,
        reviews=_sorted(memberships.filter(roles__contains=[Role.REVIEWER]), "team_id"),
        groups=groups,
        outside=_outside(groups, teams),
        agents=_sorted(Agent.objects.filter(owners__in=people), "pk"),
        keys=_sorted(AgentKey.objects.filter(created_by__in=people), "pk"),
    )


def givers_of(user: User) -> tuple[int, ...]:
    """The ids of those for whom the person may vote now."""
    now = DatabaseNow()
    given = Delegation.objects.filter(
        Delegation.COUNTS, taker=user, starts_at__lte=now, ends_at__gt=now, revoked_at__isnull=True
    )
    return _sorted(given, "giver_id")


def _outside(groups: tuple[str, ...], teams: tuple[int, ...]) -> tuple[int, ...]:
    """The other teams that have ever had a policy which names one of the groups."""
    named = Q(pk__in=[])
    for name in groups:
        text = f'"group":{canonical.dumps(name)}'
        named |= Q(quorum__contains=text) | Q(escalation__contains=text)
    return _sorted(PolicyVersion.objects.filter(named).exclude(policy__team__in=teams), "policy__team_id")


def _sorted(rows: QuerySet[Any], column: str) -> tuple[Any, ...]:
    return tuple(sorted(rows.order_by().values_list(column, flat=True).distinct()))
