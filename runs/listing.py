"""Runs in a list for people: filtered, newest first, a page at a time."""

from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from rest_framework.serializers import ValidationError

from runs.models import Agent, Run
from runs.paging import CursorField
from runs.queries import listed


def matching(runs: QuerySet[Run], *, q: str = "", status: str = "", agent: Agent | None = None) -> QuerySet[Run]:
    """Those of `runs` that fit. `q` is part of a title, an external id or a workflow's name, or a whole id."""
    if status:
        runs = runs.filter(head__status=status)
    if agent is not None:
        runs = runs.filter(agent=agent)
    if q:
        fits = Q(title__icontains=q) | Q(external_id__icontains=q) | Q(head__workflow__icontains=q)
        runs = runs.filter(fits | Q(pk=_as_id(q))) if _as_id(q) else runs.filter(fits)
    return runs


def page(runs: QuerySet[Run], *, after: str, size: int) -> tuple[list[Run], str]:
    """At most `size` runs with head and agent, newest first, and the place after them ("" at the end).

    `after` is a place that this function gave; anything else is the start.
    """
    place = _read_place(after)
    if place is not None:
        at, last = place
        runs = runs.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=last))
    found = list(listed(runs).order_by("-created_at", "-pk")[: size + 1])
    more = len(found) > size
    found = found[:size]
    return found, CursorField().to_representation((found[-1].created_at, found[-1].pk)) if more else ""


def _read_place(text: str) -> tuple[datetime, UUID] | None:
    try:
        return CursorField().to_internal_value(text) if text else None
    except ValidationError:
        return None


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
