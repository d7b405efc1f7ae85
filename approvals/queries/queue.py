"""A queue's cards: filtered, in order, a page at a time. Nothing here reads more than it shows, however many wait."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.core import signing
from django.db.models import F, Prefetch, Q, QuerySet

from approvals.models import Approval, Vote
from approvals.models.indexes import SAID
from approvals.queries.distinct import tools_of
from approvals.queries.standing import Standing
from runs.clock import DatabaseNow
from runs.models import Agent

DUE = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
COUNTED = 100
# So short a search finds no entry in the index; it looks at the first cards of the queue, and the page says so.
SHORT = 2
LOOKED_AT = 1000


def matching(
    approvals: QuerySet[Approval],
    teams: Sequence[int] = (),
    settled: bool = False,
    *,
    q: str = "",
    agent: str = "",
    tool: str = "",
    risk: str = "",
    due: str = "",
) -> QuerySet[Approval]:
    """Those that fit. `q` is part of what a card says, or an id; `due` is one of `DUE`'s names.

    A `q` of one or two letters is looked for in the first `LOOKED_AT` that fit otherwise, of each of `teams`, and in
    the order that `settled` says.
    """
    exact = {"tool": tool, "risk": risk}
    approvals = approvals.filter(**{name: value for name, value in exact.items() if value})
    if agent:
        agents = Agent.objects.filter(name=agent, **({"team__in": teams} if teams else {}))
        approvals = approvals.filter(agent__in=list(agents))
    if due in DUE:
        approvals = approvals.filter(expires_at__lt=DatabaseNow() + DUE[due])
    if 0 < len(q) <= SHORT:
        ordered = approvals.order_by(*_order(settled)).values_list("pk", flat=True)
        approvals = approvals.filter(pk__in=[pk for rows in _by_team(ordered, teams) for pk in rows[:LOOKED_AT]])
    return approvals.alias(said=SAID).filter(_says(q)) if q else approvals


def page(
    approvals: QuerySet[Approval], *, settled: bool, after: str, size: int, teams: Sequence[int] = ()
) -> tuple[list[Approval], str]:
    """At most `size` cards with agent, claim and votes, and the place after them ("" at the end).

    Due first, what has no deadline last; with `settled`, those settled last come first. `after` is a place that this
    function gave; anything else is the start. `teams`: all those whose cards these can be, where they are several.
    """
    place = _read_place(after)
    after_it = [Q()] if place is None else [_settled_before(*place)] if settled else _due_after(*place)
    votes = Vote.objects.filter(void=False, verdict__in=("approve", "edit"))
    rows = approvals.select_related("agent", "claimed_by").prefetch_related(Prefetch("votes", votes))
    found: list[Approval] = []
    for part in after_it:
        ordered = rows.filter(part).order_by(*_order(settled))
        found += _first(ordered, size + 1 - len(found), settled=settled, teams=teams)
    if len(found) <= size:
        return found, ""
    last = found[size - 1]
    first_key = last.settled_at if settled else last.expires_at
    return found[:size], signing.dumps([_text(first_key), _text(last.created_at), str(last.pk)], salt="queue")


def teams_of(standing: Standing) -> list[int]:
    """The teams whose cards the person may see, all or some of them."""
    return sorted({*standing.teams, *standing.reviews, *standing.outside})


def count(approvals: QuerySet[Approval], *, teams: Sequence[int] = ()) -> int:
    """How many there are; no further than `COUNTED`.

    In order: to count so far PostgreSQL then walks along the index that a page of them comes from, where it would else
    gather all of them first.
    """
    found = 0
    for ordered in _by_team(approvals.order_by(*_order(settled=False)), teams):
        found += ordered[: COUNTED - found].count() if found < COUNTED else 0
    return found


def count_since(approvals: QuerySet[Approval], since: datetime) -> int:
    """How many of them were asked after `since`; no further than `COUNTED`."""
    return approvals.filter(created_at__gt=since).order_by()[:COUNTED].count()


def choices(standing: Standing) -> tuple[list[str], list[str]]:
    """The names of the agents and of the tools that the person's cards can have."""
    teams = teams_of(standing)
    agents = Agent.objects.filter(team__in=teams).order_by("name").values_list("name", flat=True).distinct()
    return list(agents), tools_of(teams)


def _by_team(ordered: QuerySet[Any], teams: Sequence[int]) -> list[QuerySet[Any]]:
    """An index has its rows in order only within a team."""
    return [ordered.filter(team=team) for team in teams] if len(teams) > 1 else [ordered]


def _first(ordered: QuerySet[Approval], size: int, *, settled: bool, teams: Sequence[int]) -> list[Approval]:
    """The first of several teams together are among the first of each."""
    each = [row for rows in _by_team(ordered, teams) for row in rows[:size]]
    if settled:
        return sorted(each, key=attrgetter("settled_at", "pk"), reverse=True)[:size]
    return sorted(each, key=_due_place)[:size]


def _due_place(row: Approval) -> tuple[bool, datetime, datetime, UUID]:
    return row.expires_at is None, row.expires_at or row.created_at, row.created_at, row.pk


def _order(settled: bool) -> tuple[Any, ...]:
    return ("-settled_at", "-id") if settled else (F("expires_at").asc(nulls_last=True), "created_at", "id")


def _says(q: str) -> Q:
    said = Q(said__icontains=q)
    in_args = json.dumps(q)[1:-1]  # arguments are stored with ASCII escapes
    if in_args != q:
        said |= Q(said__icontains=in_args)
    named = Q(agent__in=list(Agent.objects.filter(name__icontains=q))) | Q(key=q)
    try:
        return said | named | Q(pk=UUID(q)) | Q(run=UUID(q))
    except ValueError:
        return said | named


def _due_after(due: datetime | None, created: datetime, last: UUID) -> list[Q]:
    """What comes after a card, as ranges of the index one after the other. The first condition of each says nothing
    new, and lets PostgreSQL begin where the last page ended."""
    same_time = Q(created_at__gte=created) & (Q(created_at__gt=created) | Q(pk__gt=last))
    without = Q(expires_at__isnull=True)
    if due is None:
        return [without & same_time]
    return [Q(expires_at__gte=due) & (Q(expires_at__gt=due) | same_time), without]


def _settled_before(settled: datetime | None, created: datetime, last: UUID) -> Q:
    return Q(settled_at__lte=settled) & (Q(settled_at__lt=settled) | Q(pk__lt=last))


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read_place(text: str) -> tuple[datetime | None, datetime, UUID] | None:
    try:
        first, created, last = signing.loads(text, salt="queue")
    except signing.BadSignature:
        return None
    return None if first is None else datetime.fromisoformat(first), datetime.fromisoformat(created), UUID(last)
