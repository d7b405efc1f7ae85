"""Taking the trail away: as JSONL that proves itself, or as a spreadsheet. Every export is itself an event."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import IO

from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet

from approvals.audit import jsonl
from approvals.audit.events import EventType, append_to_teams
from approvals.audit.hashing import SignedSeal, merkle_levels, merkle_path
from approvals.audit.jsonl import End, Header
from approvals.audit.keys import public_bytes, signing_key
from approvals.audit.queries import Filters, narrowed
from approvals.audit.records import Record, leaf_hashes, one_moment, records, utc, with_seals
from approvals.audit.sealing import seal_due
from approvals.audit.spreadsheet import write_csv
from approvals.models import AuditEvent
from runs.clock import database_now

EVERYTHING = Filters()
NOT_AUDITOR = "Only auditors take the trail away."


class Format(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


@dataclass(frozen=True)
class Exported:
    """What was written; `complete` says that it is the whole trail."""

    events: int
    seals: int
    complete: bool


def export(
    file: IO[bytes],
    *,
    as_format: Format,
    actor: str,
    filters: Filters = EVERYTHING,
    teams: Sequence[int] | None = None,
) -> Exported:
    """Record that `actor` exports, seal, and write the sealed events that pass `filters` to `file`.

    `teams` limits it to theirs; without them and without filters the export is the whole trail.
    Raises `KeyProblem` and `TrailRewritten`.
    """
    complete = teams is None and filters == EVERYTHING
    _record(as_format=as_format, actor=actor, filters=filters, teams=[filters.team] if filters.team else teams)
    seal_due()
    with one_moment():
        events = AuditEvent.objects.all() if teams is None else AuditEvent.objects.filter(team__in=teams)
        events = narrowed(events, filters).filter(leaf__no__isnull=False).order_by("leaf__no")
        if as_format is Format.CSV:
            return Exported(write_csv(file, events), 0, complete)
        out = _Jsonl(file)
        out.header(Header(settings.DEPLOYMENT, utc(database_now()), filters.described(), complete))
        (_write_whole if complete else _write_chosen)(out, events)
        out.end()
        return Exported(out.events, out.seals, complete)


@transaction.atomic
def refuse_export(*, actor: str, teams: Sequence[int]) -> None:
    """Put on record, in the chains of the teams (ids) that `actor` knows, that they wanted the trail."""
    body = {"attempt": "export the trail", "reason": "NotEligible", "message": NOT_AUDITOR}
    with connection.cursor() as cursor:
        append_to_teams(cursor, teams, type=EventType.ATTEMPT_REFUSED, actor=actor, body=body)


@transaction.atomic
def _record(*, as_format: Format, actor: str, filters: Filters, teams: Sequence[int] | None) -> None:
    """In each exported team's own chain, so that its auditors see it; in the site's if it is all of them."""
    body = {"format": as_format, "filters": filters.described()}
    with connection.cursor() as cursor:
        append_to_teams(cursor, teams or [None], type=EventType.AUDIT_EXPORTED, actor=actor, body=body)


class _Jsonl:
    """The file that is being written: what has gone into it, and its digest."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = sha256()
        self.events = self.seals = 0

    def header(self, header: Header) -> None:
        self._write(jsonl.write_header(header))

    def seal(self, signed: SignedSeal) -> None:
        self.seals += 1
        self._write(jsonl.write_seal(signed))

    def event(self, record: Record, path: Sequence[bytes] | None = None) -> None:
        self.events += 1
        self._write(jsonl.write_event(record, path))

    def end(self) -> None:
        key = signing_key()
        end = End(self.events, self.seals, self.digest.digest(), public_bytes(key), b"")
        self._write(jsonl.write_end(replace(end, signature=key.sign(end.message()))))

    def _write(self, line: str) -> None:
        encoded = line.encode()
        self.digest.update(encoded)
        self.file.write(encoded)


def _write_whole(out: _Jsonl, events: QuerySet[AuditEvent]) -> None:
    for entry in with_seals(records(events)):
        if isinstance(entry, SignedSeal):
            out.seal(entry)
        else:
            out.event(entry)


def _write_chosen(out: _Jsonl, events: QuerySet[AuditEvent]) -> None:
    """Only the seals that cover one of `events`, and with each event its path to the seal's root."""
    covering: SignedSeal | None = None
    levels: list[list[bytes]] = []
    for entry in with_seals(records(events)):
        if isinstance(entry, SignedSeal):
            covering, levels = entry, []
        elif covering and entry.leaf:
            if not levels:
                levels = merkle_levels(leaf_hashes(covering.seal))
                out.seal(covering)
            out.event(entry, merkle_path(levels, entry.leaf - covering.seal.first))
