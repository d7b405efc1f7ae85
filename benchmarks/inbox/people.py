"""Who looks: a reviewer and an auditor of one team, somebody in two, and the agents of all."""

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.utils import timezone

from benchmarks.inbox.filling import AGENTS, TEAMS
from runs.models import Agent, Membership, Role, Team

NAMES = ("reviewer", "other", "both", "auditor")


@dataclass(frozen=True)
class People:
    reviewer: User
    other: User
    both: User
    auditor: User
    agents: list[Agent]


def settle_in() -> People:
    """Four teams with their agents, in a database that has only what the migrations put there."""
    teams = [Team.objects.get(name="Default"), *(Team.objects.create(name=f"Team {n}") for n in range(2, TEAMS + 1))]
    for team in teams:
        for name in (*(f"agent-{n:02}" for n in range(AGENTS)), "rare-agent"):
            Agent.objects.create(team=team, name=name)
    people = {name: User.objects.create(username=name) for name in NAMES}
    for name in ("reviewer", "other", "both"):
        Membership.objects.create(user=people[name], team=teams[0], roles=[Role.REVIEWER])
    Membership.objects.create(user=people["both"], team=teams[1], roles=[Role.REVIEWER])
    Membership.objects.create(user=people["auditor"], team=teams[0], roles=[Role.AUDITOR])
    Membership.objects.update(since=timezone.now() - timedelta(days=30))
    found = known()
    if found is None:
        raise RuntimeError("the people were not stored")
    return found


def known() -> People | None:
    """Those of a database that was filled before."""
    people = {user.username: user for user in User.objects.filter(username__in=NAMES)}
    return People(**people, agents=list(Agent.objects.order_by("team", "name"))) if people else None
