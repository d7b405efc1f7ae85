"""A queue's cards: filtered, in order, a page at a time. Nothing here reads more than it shows, however many wait.

A queue comes in parts (see `tabs`), each along an index in the queue's order.
"""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.core import signing
from django.db.models import BooleanField, ExpressionWrapper, F, Prefetch, Q, QuerySet, prefetch_related_objects

from approvals.models import Approval, Vote
from approvals.models.indexes import SAID
from approvals.queries.distinct import tools_of
from approvals.queries.standing import Standing
from approvals.queries.visibility import by_team, visible_by
from approvals.states import OPEN
from runs.clock import DatabaseNow
from runs.models import Agent

DUE = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
COUNTED = 100
# So short a search finds no entry in the index; it looks at the first cards of the queue, and the page says so.
SHORT = 2
LOOKED_AT = 1000
# A search for a number or an id among other words looks for that first: the index would intersect what has each of its
# parts, and nearly every card has those of a common word.
WORD = re.compile(r"[0-9A-Za-z]+")
NAME = 5  # letters, at least
# What fits several filters, or a search, is read once where it is so few, and the tabs look among these.
FEW = 250


def matching(
    cards: Sequence[QuerySet[Approval]],
    teams: Sequence[int] = (),
    settled: bool = False,
    *,
    q: str = "",
    agent: str = "",
    tool: str = "",
    risk: str = "",
    due: str = "",
) -> list[QuerySet[Approval]]:
    """Those that fit, of each part. `q` is part of what a card says, or an id; `due` is one of `DUE`'s names.

    A `q` of one or two letters is looked for in the first `LOOKED_AT` of each part that fit otherwise, in the order
    that `settled` says. `teams`: whose agents may have asked; all if there are none.
    """
    exact = exactly(teams, agent=agent, tool=tool, risk=risk, due=due)
    fitting = [part.filter(exact) for part in cards]
    if not q:
        return fitting
    says = _says(q)
    if len(q) <= SHORT:
        return [_first_that_say(says, part, settled=settled) for part in fitting]
    if name := _name_in(q):
        first = _says(q, name)
        fitting = [_unless_many(part.alias(said=SAID).filter(first), part, settled=settled) for part in fitting]
    return [part.alias(said=SAID).filter(says) for part in fitting]


def exactly(teams: Sequence[int] = (), *, agent: str = "", tool: str = "", risk: str = "", due: str = "") -> Q:
    """Whether a card fits the filters, as `matching` takes them."""
    exact = Q(**{name: value for name, value in {"tool": tool, "risk": risk}.items() if value})
    if agent:
        agents = Agent.objects.filter(name=agent, **({"team__in": teams} if teams else {}))
        exact &= Q(agent__in=list(agents))
    if due in DUE:
        exact &= Q(expires_at__lt=DatabaseNow() + DUE[due])
    return exact


def few_open(standing: Standing, **chosen: str) -> list[UUID] | None:
    """The open cards that fit a search or several filters, as `matching` takes them; None if they are many.

    In the queue's order, so that PostgreSQL finds out that they are many by walking past the first.
    """
    searched = len(chosen.get("q", ""))
    if 0 < searched <= SHORT or (not searched and len(chosen) < 2):
        return None
    waiting = by_team(visible_by(standing).filter(status__in=sorted(OPEN)), standing)
    found: list[UUID] = []
    for part in matching(waiting, standing.reach, False, **chosen):
        found += part.order_by(*in_order(settled=False)).values_list("pk", flat=True)[: FEW + 1 - len(found)]
    return found if len(found) <= FEW else None


def page(cards: Sequence[QuerySet[Approval]], *, settled: bool, after: str, size: int) -> tuple[list[Approval], str]:
    """At most `size` cards of all parts, with agent, claim and votes, and the place after them ("" at the end).

    Due first, what has no deadline last; with `settled`, those settled last come first. `after` is a place that this
    function gave; anything else is the start.
    """
    place = _read_place(after)
    after_it = [Q()] if place is None else [_settled_before(*place)] if settled else _due_after(*place)
    found: list[Approval] = []
    for stretch in after_it:
        ordered = [part.filter(stretch).order_by(*in_order(settled)) for part in cards]
        found += _first(ordered, size + 1 - len(found), settled=settled)
    votes = Vote.objects.filter(void=False, verdict__in=("approve", "edit"))
    prefetch_related_objects(found[:size], Prefetch("votes", votes))
    if len(found) <= size:
        return found, ""
    last = found[size - 1]
    first_key = last.settled_at if settled else last.expires_at
    return found[:size], signing.dumps([_text(first_key), _text(last.created_at), str(last.pk)], salt="queue")


def count(cards: Sequence[QuerySet[Approval]]) -> int:
    """How many there are in all parts together; no further than `COUNTED`.

    In order: to count so far PostgreSQL then walks along the index that a page of them comes from, where it would else
    gather all of them first.
    """
    return _counted(part.order_by(*in_order(settled=False)) for part in cards)


def count_since(cards: Sequence[QuerySet[Approval]], since: datetime) -> int:
    """How many of them were asked after `since`; no further than `COUNTED`."""
    return _counted(part.filter(created_at__gt=since).order_by() for part in cards)


def choices(standing: Standing) -> tuple[list[str], list[str]]:
    """The names of the agents and of the tools that the person's cards can have."""
    agents = Agent.objects.filter(team__in=standing.reach).order_by("name").values_list("name", flat=True).distinct()
    return list(agents), tools_of(standing.reach)


def _first_that_say(says: Q, cards: QuerySet[Approval], *, settled: bool) -> QuerySet[Approval]:
    """In one walk along the queue: what a card says is asked where it is read."""
    first = cards.order_by(*in_order(settled)).alias(said=SAID).annotate(says=ExpressionWrapper(says, BooleanField()))
    return cards.filter(pk__in=[pk for pk, fits in first.values_list("pk", "says")[:LOOKED_AT] if fits])


def _counted(cards: Iterable[QuerySet[Approval]]) -> int:
    found: set[UUID] = set()
    for part in cards:
        if len(found) < COUNTED:
            found.update(part.values_list("pk", flat=True)[:COUNTED])
    return min(len(found), COUNTED)


def _first(ordered: Iterable[QuerySet[Approval]], size: int, *, settled: bool) -> list[Approval]:
    """The first of several parts together are among the first of each."""
    each = {row.pk: row for part in ordered for row in part.select_related("agent", "claimed_by")[:size]}
    if settled:
        return sorted(each.values(), key=attrgetter("settled_at", "pk"), reverse=True)[:size]
    return sorted(each.values(), key=_due_place)[:size]


def _due_place(row: Approval) -> tuple[bool, datetime, datetime, UUID]:
    return row.expires_at is None, row.expires_at or row.created_at, row.created_at, row.pk


def in_order(settled: bool) -> tuple[Any, ...]:
    """What to order cards by: as the queue of those that wait stands, or as the history does."""
    return ("-settled_at", "-id") if settled else (F("expires_at").asc(nulls_last=True), "created_at", "id")


def _name_in(q: str) -> str:
    """The longest word with a digit in it, unless it is all of `q`: few cards have it, when many have the others."""
    words = [word for word in WORD.findall(q) if len(word) >= NAME and word != q and not word.isalpha()]
    return max(words, key=len, default="")


def _unless_many(narrowed: QuerySet[Approval], cards: QuerySet[Approval], *, settled: bool) -> QuerySet[Approval]:
    """Of `cards` those that are in `narrowed`, or all of them where these are many."""
    found = list(narrowed.order_by(*in_order(settled)).values_list("pk", flat=True)[: FEW + 1])
    return cards.filter(pk__in=found) if len(found) <= FEW else cards


def _says(q: str, part: str = "") -> Q:
    """Whether a card says `q`, or `part` of it; or is named so."""
    said = Q(said__icontains=part or q)
    in_args = json.dumps(q)[1:-1]  # arguments are stored with ASCII escapes
    if in_args != q and not part:
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
