"""Reads of saved snapshots for pages, the API and operators."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, zip_longest
from typing import Any
from uuid import UUID

from django.db import connection

from checkpoints.codec.places import Place, render, root, step_to
from checkpoints.models import Checkpoint
from checkpoints.store.reading import load, opened_chunk, unpacked_items
from checkpoints.store.records import Snapshot

_MISSING: Any = object()
_CHUNKS = """SELECT first, count, body FROM checkpoints_historychunk
    WHERE run_id = %s AND first < %s AND first >= coalesce(
        (SELECT max(first) FROM checkpoints_historychunk WHERE run_id = %s AND first <= %s), 0)
    ORDER BY first"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A checkpoint without its contents. `size` is in bytes uncompressed, history included."""

    seq: int
    at: datetime
    epoch: int
    workflow: str
    schema: int
    phase: str
    turn: int
    reason: str
    history_length: int
    size: int
    digest: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A path at which two checkpoints differ. `kind`: `added`, `removed` or `changed`; `name`: the nearest key."""

    path: str
    name: str
    kind: str
    before: Any
    after: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """What a run did between two of its checkpoints. `history_added` has the first of the `added` items."""

    before: Snapshot
    after: Snapshot
    state: tuple[Change, ...]
    position: tuple[Change, ...]
    pending: tuple[Change, ...]
    history_added: tuple[Any, ...]

    @property
    def added(self) -> int:
        return max(0, self.after.history_length - self.before.history_length)


def list_checkpoints(*, run_id: UUID, before: int | None = None, limit: int = 100) -> list[Listed]:
    """A run's checkpoints, newest first; `before` is the last seq of the page before."""
    rows = Checkpoint.objects.filter(run_id=run_id).order_by("-seq")
    if before is not None:
        rows = rows.filter(seq__lt=before)
    return [Listed(**row) for row in rows.values(*Listed.__dataclass_fields__)[:limit]]


def neighbours(*, run_id: UUID, seq: int) -> tuple[int | None, int | None]:
    """The numbers of the checkpoints next to `seq` that are kept: the one before and the one after."""
    others = Checkpoint.objects.filter(run_id=run_id).values_list("seq", flat=True)
    before, after = others.filter(seq__lt=seq).order_by("-seq"), others.filter(seq__gt=seq).order_by("seq")
    return before.first(), after.first()


def history_page(*, run_id: UUID, first: int, count: int) -> list[Any]:
    """At most `count` history items from index `first` on. Raises Unreadable."""
    with connection.cursor() as cursor:
        cursor.execute(_CHUNKS, [run_id, first + count, run_id, first])
        rows = cursor.fetchall()
    if not rows:
        return []
    start = rows[0][0]
    items = unpacked_items((opened_chunk(run_id, at, length, bytes(body)) for at, length, body in rows), start)
    return list(islice(items, first - start, first - start + count))


def compare(*, run_id: UUID, a: int, b: int, items: int) -> Difference:
    """What changed from checkpoint `a` to `b`, with at most `items` of the history added. Raises as `load` does."""
    with connection.cursor() as cursor:
        before, _ = load(cursor, run_id=run_id, seq=a, history=False)
        after, _ = load(cursor, run_id=run_id, seq=b, history=False)
    count = min(items, max(0, after.history_length - before.history_length))
    added = history_page(run_id=run_id, first=before.history_length, count=count) if count else ()
    return Difference(
        before=before,
        after=after,
        state=tuple(_changes(root("state"), before.state, after.state)),
        position=tuple(_changes(root("position"), before.position, after.position)),
        pending=tuple(_changes(root("pending"), before.pending, after.pending)),
        history_added=tuple(added),
    )


def _changes(place: Place, before: Any, after: Any, name: str = "") -> Iterator[Change]:
    if type(before) is dict and type(after) is dict:
        for key in before | after:
            named = key if type(key) is str else ""
            yield from _changes((place, step_to(key)), before.get(key, _MISSING), after.get(key, _MISSING), named)
    elif type(before) is list and type(after) is list:
        for index, (old, new) in enumerate(zip_longest(before, after, fillvalue=_MISSING)):
            yield from _changes((place, index), old, new, name)
    elif before is _MISSING:
        yield Change(path=render(place), name=name, kind="added", before=None, after=after)
    elif after is _MISSING:
        yield Change(path=render(place), name=name, kind="removed", before=before, after=None)
    elif type(before) is not type(after) or before != after:
        yield Change(path=render(place), name=name, kind="changed", before=before, after=after)
