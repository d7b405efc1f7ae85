"""Pages of the trail, newest first. What no index has is looked for along the trail, `LOOKED_AT` events at a time."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.db.models import BooleanField, Case, ExpressionWrapper, OuterRef, Q, QuerySet, Subquery, Value, When

from approvals.audit.queries import Filters, in_bodies, placed
from approvals.models import Approval, AuditBody, AuditEvent
from approvals.models.audit import EVERYDAY
from approvals.queries.distinct import tools_of
from runs.models import Run

PAGE = 50
LOOKED_AT = 5000  # events, for one page
FEW = 2000  # approvals and runs of an agent, or events of a person: so many are looked up one by one instead
STRIDE = (2, 4)  # how many times as many events the next look reads, at least and at most
SPARE = 1.25  # as many times as many as it should take
LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, order=True)
class Place:
    """Where a page ends: at this event."""

    at: datetime
    id: int

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """What `str` gave; None for anything else."""
        at, _, key = text.partition("_")
        try:
            place = cls(datetime.fromisoformat(at), int(key))
        except ValueError:
            return None
        return place if place.at.tzinfo and 0 < place.id <= LARGEST_ID else None


@dataclass(frozen=True)
class Page:
    """Newest first. `end` is where to go on, if there may be more. `looked_back_to`: the page is not full, and no more
    events were looked at than those since then."""

    events: list[AuditEvent]
    end: Place | None
    looked_back_to: datetime | None


def page(
    parts: Sequence[QuerySet[AuditEvent]],
    filters: Filters,
    *,
    teams: Sequence[int] = (),
    after: Place | None = None,
    size: int = PAGE,
) -> Page:
    """The next `size` events of all `parts` that pass the filters, with their bodies and seals' numbers. `teams` are
    those whose approvals the events can be about."""
    exact, sieve = _sorted_out(filters, teams)
    found: set[Place] = set()
    ends = []
    for part in parts:
        places, end = _look(part.filter(exact), sieve, after=after, size=size)
        found.update(places)
        ends += [end] if end else []
    # No part says anything about what lies before its end.
    horizon = max(ends, default=None)
    seen = sorted((place for place in found if horizon is None or place >= horizon), reverse=True)
    shown = seen[:size]
    rows = AuditEvent.objects.select_related("content", "leaf", "team").in_bulk([place.id for place in shown])
    if len(seen) > size:
        return Page([rows[place.id] for place in shown], shown[-1], None)
    return Page([rows[place.id] for place in shown], horizon, horizon.at if horizon else None)


def _look(
    events: QuerySet[AuditEvent], sieve: Q, *, after: Place | None, size: int
) -> tuple[list[Place], Place | None]:
    """The places of the newest events that pass the sieve, one more than `size` at most, and the place down to which
    there are no others; None: there are none at all."""
    rows = _sifted(events, sieve).order_by("-at", "-id").values_list("at", "id", "passes")
    found: list[Place] = []
    most = max(LOOKED_AT, size + 1)
    stride, left = size + 1, most
    while len(found) <= size and left:
        read = list((rows.filter(_older_than(after)) if after else rows)[:stride])
        found += [Place(at, key) for at, key, passes in read if passes]
        if len(read) < stride:
            return found[: size + 1], found[size] if len(found) > size else None
        after = Place(*read[-1][:2])
        left -= stride
        likely = _likely(size + 1 - len(found), found=len(found), among=most - left)
        stride = min(max(STRIDE[0] * stride, likely), STRIDE[1] * stride, left)
    return found[: size + 1], found[size] if len(found) > size else after


def _likely(wanted: int, *, found: int, among: int) -> int:
    """How many events have likely as many as are wanted, when there were so many among the last."""
    return math.ceil(wanted * among / max(found, 1) * SPARE)


def _older_than(place: Place) -> Q:
    return Q(at__lte=place.at) & ~Q(at=place.at, pk__gte=place.id)


def _sorted_out(filters: Filters, teams: Sequence[int]) -> tuple[Q, Q]:
    """What an index finds, and what each event must be asked."""
    exact, sieve = placed(filters), Q()
    if filters.type in EVERYDAY:
        sieve &= Q(type=filters.type)
    elif filters.type:
        exact &= Q(type=filters.type)
    if filters.text:
        sieve &= Q(said__icontains=in_bodies(filters.text))
    for column, found, question in _questions(filters, teams):
        keys = None if filters.approval or filters.run else _few(found)
        if keys is None:
            sieve &= question
        else:
            exact &= Q(**{f"{column}__in": keys})
    return exact, sieve


def _questions(filters: Filters, teams: Sequence[int]) -> Iterator[tuple[str, Sequence[QuerySet[Any]], Q]]:
    """For each filter that looks elsewhere: a column, what it may be, and the same as a question for `_sifted`."""
    if filters.person:
        actor = f"person:{filters.person}"
        did, about = AuditEvent.objects.filter(actor=actor), AuditBody.objects.filter(person=filters.person)
        yield "pk", (did, about), Q(actor=actor) | Q(about=filters.person)
    if filters.agent:
        asked, ran = Approval.objects.filter(agent=filters.agent), Run.objects.filter(agent=filters.agent)
        yield "subject", (asked, ran), Q(whose=filters.agent)
    if filters.tool:
        names = [name for name in tools_of(teams) if name.upper() == filters.tool.upper()]
        called = Approval.objects.filter(team__in=teams, tool__in=names)
        yield "subject", (called,), Q(tool__iexact=filters.tool)


def _few(found: Sequence[QuerySet[Any]]) -> list[Any] | None:
    """The keys of all; None if they are many."""
    keys: list[Any] = []
    for rows in found:
        keys += rows.order_by().values_list("pk", flat=True)[: FEW + 1 - len(keys)]
    return keys if len(keys) <= FEW else None


def _sifted(events: QuerySet[AuditEvent], sieve: Q) -> QuerySet[Any]:
    """With `passes`, by one look-up for each event that is read. For a condition, also for an EXISTS, PostgreSQL may
    gather all that fits anywhere."""
    body = AuditBody.objects.filter(pk=OuterRef("pk"))
    approval = Approval.objects.filter(pk=OuterRef("subject")).order_by()
    run = Run.objects.filter(pk=OuterRef("subject")).order_by()
    return events.alias(
        said=Subquery(body.values("body")),
        about=Subquery(body.values("person")),
        whose=Case(
            When(chain__startswith="approval:", then=Subquery(approval.values("agent"))),
            default=Subquery(run.values("agent")),
        ),
        tool=Subquery(approval.values("tool")),
    ).annotate(passes=ExpressionWrapper(sieve, BooleanField()) if sieve else Value(True))
