"""Runs in a list for people: filtered, newest first, a page at a time."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet
from rest_framework.serializers import ValidationError

from runs.models import Agent, Run
from runs.paging import CursorField, newest
from runs.queries import listed


def matching(
    parts: Sequence[QuerySet[Run]], *, q: str = "", status: str = "", agent: Agent | None = None
) -> list[QuerySet[Run]]:
    """Those of each part that fit. `q` is part of a title, an external id or a workflow's name, or a whole id."""
    fits = Q()
    if status:
        fits &= Q(head__status=status)
    if agent is not None:
        fits &= Q(agent=agent)
    if q:
        said = Q(title__icontains=q) | Q(external_id__icontains=q) | Q(head__workflow__icontains=q)
        fits &= said | Q(pk=_as_id(q)) if _as_id(q) else said
    return [part.filter(fits) for part in parts]


def page(parts: Sequence[QuerySet[Run]], *, after: str, size: int) -> tuple[list[Run], str]:
    """At most `size` runs of all parts, with head and agent, newest first, and the place after them ("" at the end).

    `after` is a place that this function gave; anything else is the start.
    """
    found = newest([listed(part) for part in parts], _read_place(after), size=size + 1)
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
