"""Changes of agents, keys and people, into the audit trail of every team that they concern."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from runs.hooks import hooks
from runs.models import Membership
from runs.principals import Person


def actor_of(by: User | None) -> str:
    """As the audit trail names them. Nobody: it was done on the server's command line."""
    return Person(by).actor if by else "system"


def record_change(*, teams: Iterable[int], type: str, actor: str, facts: dict[str, Any]) -> None:
    """Into the trail of each of `teams`; of the site where there is none."""
    with connection.cursor() as cursor:
        hooks().record_change(cursor, teams=[*teams], type=type, actor=actor, body=facts)


def record_person(*, person: int, type: str, actor: str, facts: dict[str, Any]) -> None:
    """What concerns a person (an id), into the trails of all of their teams."""
    teams = Membership.objects.filter(user=person).values_list("team_id", flat=True)
    record_change(teams=teams, type=type, actor=actor, facts={"person": person, **facts})
