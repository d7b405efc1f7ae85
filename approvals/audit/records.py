"""The trail as it is read back, from the database or from an exported file: the same records either way."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet

from approvals.audit.hashing import Link, Seal, SignedSeal
from approvals.audit.sealing import as_seal
from approvals.models import AuditEvent, AuditSeal
from runs.strictjson import Number

CHUNK = 2000


@dataclass(frozen=True, slots=True)
class Content:
    """The readable part of an event: canonical JSON text and the salt that its commitment took."""

    salt: bytes
    body: str


@dataclass(frozen=True, slots=True)
class Record:
    """An event. `leaf` is its number among the sealed events, None if it has none; `content` is None if erased.

    `path` leads from the event to the root of its seal; only filtered exports have it.
    """

    leaf: int | None
    link: Link
    hash: bytes
    content: Content | None
    path: tuple[bytes, ...] | None = None


COLUMNS = (
    "leaf_no",
    "chain",
    "n",
    "at",
    "team_id",
    "actor",
    "type",
    "body_commit",
    "prev",
    "hash",
    "content__salt",
    "content__body",
)


@contextmanager
def one_moment() -> Iterator[None]:
    """All reads inside see the trail as it was at the first of them. Inside a transaction, that one's rules hold."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def records(events: QuerySet[AuditEvent]) -> Iterator[Record]:
    """`events` one by one, in the order of the query, without holding all of them in memory."""
    rows = events.annotate(leaf_no=F("leaf__no")).values_list(*COLUMNS)
    for leaf, chain, n, at, team, actor, kind, commit, prev, digest, salt, body in rows.iterator(CHUNK):
        link = Link(chain, n, at, team, actor, kind, bytes(commit), bytes(prev))
        yield Record(leaf, link, bytes(digest), None if salt is None else Content(bytes(salt), body))


def seals() -> Iterator[SignedSeal]:
    """Every seal, in order."""
    for row in AuditSeal.objects.order_by("no").iterator(CHUNK):
        yield SignedSeal(as_seal(row), bytes(row.signature))


def with_seals(sealed: Iterator[Record]) -> Iterator[SignedSeal | Record]:
    """`sealed`, in the order of their leaves, each after the seal that covers it; seals that cover none as well."""
    record = next(sealed, None)
    for signed in seals():
        yield signed
        while record and record.leaf is not None and record.leaf <= signed.seal.last:
            yield record
            record = next(sealed, None)
    if record:
        yield record
        yield from sealed


def leaf_hashes(seal: Seal) -> list[bytes]:
    """The hashes of the events that `seal` covers, in its order."""
    events = AuditEvent.objects.filter(leaf__no__range=(seal.first, seal.last)).order_by("leaf__no")
    return [bytes(digest) for digest in events.values_list("hash", flat=True)]


def exact(text: str) -> Any:
    """The value of a body, or of one line of an export: every number keeps its digits. Raises ValueError."""
    return json.loads(text, parse_int=Number, parse_float=Number)


def utc(at: datetime) -> str:
    """RFC 3339 with microseconds, as every exported time is written."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_utc(text: str) -> datetime:
    """The time that `utc` wrote. Raises ValueError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    return at
