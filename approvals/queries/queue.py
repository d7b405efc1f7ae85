"""A queue's cards: filtered, in order, a page at a time. Nothing here reads more than it shows, however many wait."""

import json
from datetime import datetime, timedelta
from uuid import UUID

from django.core import signing
from django.db.models import F, Prefetch, Q, QuerySet

from approvals.models import Approval, Vote
from approvals.queries.distinct import tools_of
from approvals.queries.standing import Standing
from runs.clock import DatabaseNow
from runs.models import Agent

DUE = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}
COUNTED = 1000


def matching(
    approvals: QuerySet[Approval], *, q: str = "", agent: str = "", tool: str = "", risk: str = "", due: str = ""
) -> QuerySet[Approval]:
    """Those that fit. `q` is part of what a card says, or an id; `due` is one of `DUE`'s names."""
    exact = {"tool": tool, "risk": risk}
    approvals = approvals.filter(**{name: value for name, value in exact.items() if value})
    if agent:
        approvals = approvals.filter(agent__in=list(Agent.objects.filter(name=agent)))
    if due in DUE:
        approvals = approvals.filter(expires_at__lt=DatabaseNow() + DUE[due])
    return approvals.filter(_says(q)) if q else approvals


def page(approvals: QuerySet[Approval], *, settled: bool, after: str, size: int) -> tuple[list[Approval], str]:
    """At most `size` cards with agent, claim and votes, and the place after them ("" at the end).

    Due first, what has no deadline last; with `settled`, those settled last come first. `after` is a place that this
    function gave; anything else is the start.
    """
    place = _read_place(after)
    if place is not None:
        approvals = approvals.filter(_settled_before(*place) if settled else _due_after(*place))
    order = ("-settled_at", "-id") if settled else (F("expires_at").asc(nulls_last=True), "created_at", "id")
    votes = Vote.objects.filter(void=False, verdict__in=("approve", "edit"))
    rows = approvals.select_related("agent", "claimed_by").prefetch_related(Prefetch("votes", votes)).order_by(*order)
    found = list(rows[: size + 1])
    if len(found) <= size:
        return found, ""
    last = found[size - 1]
    first_key = last.settled_at if settled else last.expires_at
    return found[:size], signing.dumps([_text(first_key), _text(last.created_at), str(last.pk)], salt="queue")


def count(approvals: QuerySet[Approval]) -> int:
    """How many there are; no further than `COUNTED`."""
    return approvals.order_by()[:COUNTED].count()


def choices(standing: Standing) -> tuple[list[str], list[str]]:
    """The names of the agents and of the tools that the person's cards can have."""
    teams = sorted({*standing.teams, *standing.reviews, *standing.outside})
    agents = Agent.objects.filter(team__in=teams).order_by("name").values_list("name", flat=True).distinct()
    return list(agents), tools_of(teams)


def _says(q: str) -> Q:
    in_args = json.dumps(q)[1:-1]  # arguments are stored with ASCII escapes
    said = Q(title__icontains=q) | Q(description__icontains=q) | Q(args__icontains=in_args) | Q(tool__icontains=q)
    named = Q(agent__in=list(Agent.objects.filter(name__icontains=q))) | Q(key=q)
    try:
        return said | named | Q(pk=UUID(q)) | Q(run=UUID(q))
    except ValueError:
        return said | named


def _due_after(due: datetime | None, created: datetime, last: UUID) -> Q:
    same_time = Q(created_at__gt=created) | Q(created_at=created, pk__gt=last)
    if due is None:
        return Q(expires_at__isnull=True) & same_time
    return Q(expires_at__gt=due) | Q(expires_at__isnull=True) | (Q(expires_at=due) & same_time)


def _settled_before(settled: datetime | None, created: datetime, last: UUID) -> Q:
    return Q(settled_at__lt=settled) | Q(settled_at=settled, pk__lt=last)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read_place(text: str) -> tuple[datetime | None, datetime, UUID] | None:
    try:
        first, created, last = signing.loads(text, salt="queue")
    except signing.BadSignature:
        return None
    return None if first is None else datetime.fromisoformat(first), datetime.fromisoformat(created), UUID(last)
