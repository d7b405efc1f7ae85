"""Checking the trail: in the database, or in an exported file with nothing else at hand."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from django.db import connection

from approvals.audit import anchors, jsonl
from approvals.audit.anchors import Anchored
from approvals.audit.checks import ChosenEvents, Report, WholeTrail
from approvals.audit.hashing import Seal, SignedSeal
from approvals.audit.jsonl import End, Header, NotALine
from approvals.audit.keys import is_signed
from approvals.audit.records import Record, one_moment, records, with_seals
from approvals.models import AuditEvent

# Every table of the trail, and how many ENABLE ALWAYS triggers guard it.
GUARDS = {
    "approvals_auditevent": 2,
    "approvals_auditbody": 3,
    "approvals_auditerasure": 2,
    "approvals_auditleaf": 3,
    "approvals_auditseal": 2,
}


def verify_database(trusted: frozenset[bytes], copies: Sequence[Path] = ()) -> Report:
    """Check every event and seal, against the anchor and `copies` of anchors. `trusted`: the public keys whose seals
    count. Raises OSError for a copy that cannot be read."""
    report = Report()
    trail = WholeTrail(trusted, report)
    with one_moment():
        _check_guards(report)
        path = anchors.anchor_path()
        read = [anchors.read(path) if path else iter(()), *map(anchors.read_copy, copies)]
        anchored = [_Anchors(report, lines) for lines in read]
        for entry in with_seals(records(AuditEvent.objects.filter(leaf__no__isnull=False).order_by("leaf__no"))):
            if isinstance(entry, SignedSeal):
                trail.take_seal(entry)
                for anchor in anchored:
                    anchor.take(entry.seal)
            else:
                trail.take_event(entry)
        for record in records(AuditEvent.objects.filter(leaf__isnull=False, leaf__no__isnull=True).order_by("id")):
            trail.take_event(record)
        for record in records(AuditEvent.objects.filter(leaf__isnull=True).order_by("id")):
            report.add("added", f"{record.link.chain} {record.link.n}", "it never went through the trail's own door")
        trail.finish()
        for anchor in anchored:
            anchor.finish()
    return report


def verify_file(path: Path, trusted: frozenset[bytes]) -> Report:
    """Check an exported JSONL file, line by line; no database is asked. Raises OSError."""
    checked = _File(trusted)
    with path.open("rb") as file:
        for line in file:
            checked.take(line)
    return checked.finish()


class _File:
    """An exported file that is being read: what it said so far, and its digest."""

    def __init__(self, trusted: frozenset[bytes]) -> None:
        self.trusted = trusted
        self.report = Report()
        self.trail: WholeTrail | ChosenEvents = WholeTrail(trusted, self.report)
        self.digest = sha256()
        self.lines = 0
        self.end: End | None = None

    def take(self, raw: bytes) -> None:
        self.lines += 1
        where = f"line {self.lines}"
        try:
            entry = jsonl.read_line(raw.decode())
        except (NotALine, UnicodeDecodeError) as error:
            entry = None
            self.report.add("changed", where, f"it is not a line of an export ({error})")
        if self.end:
            self.report.add("added", where, "it comes after the end")
        if isinstance(entry, Header) and self.lines > 1:
            self.report.add("added", where, "a header belongs on the first line only")
        elif not isinstance(entry, Header) and self.lines == 1:
            self.report.add("missing", where, "a header belongs here")
        self._take_entry(entry)
        self.digest.update(raw)

    def finish(self) -> Report:
        self.trail.finish()
        if not self.end:
            self.report.add("missing", "the end", "the file stops before its last line")
        return self.report

    def _take_entry(self, entry: Header | SignedSeal | Record | End | None) -> None:
        match entry:
            case Header(complete=False) if self.lines == 1:
                self.report.notes.append(jsonl.FILTERED)
                self.trail = ChosenEvents(self.trusted, self.report)
            case SignedSeal():
                self.trail.take_seal(entry)
            case Record():
                self.trail.take_event(entry)
            case End():
                self.end = entry
                self._check_end(entry)

    def _check_end(self, end: End) -> None:
        report = self.report
        if (end.events, end.seals) != (report.events, report.seals):
            kind = "missing" if report.events < end.events or report.seals < end.seals else "added"
            found, written = f"{report.events} events and {report.seals} seals", f"{end.events} and {end.seals}"
            report.add(kind, "the end", f"the file has {found}; {written} were written")
        if end.sha256 != self.digest.digest():
            report.add("changed", "the file", "it is not byte for byte what was exported")
        if not is_signed(end.message(), end.signature, end.key):
            report.add("changed", "the end", "the signature is not by its key, or not of this file")
        elif end.key not in self.trusted:
            report.add("unproven", "the end", "it is signed by a key that is not trusted here")


def _check_guards(report: Report) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, count(*) FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgenabled = 'A' AND tgrelid = ANY(%s::regclass[]) GROUP BY tgrelid",
            [list(GUARDS)],
        )
        found = dict(cursor.fetchall())
    for table, wanted in GUARDS.items():
        if found.get(table, 0) < wanted:
            report.add("changed", table, "a trigger that keeps it append-only is missing or disabled")


class _Anchors:
    """Compares the seals, given in order, with the anchor's lines: each must still be there as it was."""

    def __init__(self, report: Report, lines: Iterator[Anchored]) -> None:
        self.report = report
        self.lines = lines
        self.line = next(self.lines, None)

    def take(self, seal: Seal) -> None:
        self._miss(until=seal.no)
        while self.line and self.line.no == seal.no:
            if self.line.digest != seal.digest():
                self.report.add("changed", f"seal {seal.no}", "it is not the one that was anchored")
            self.line = next(self.lines, None)

    def finish(self) -> None:
        self._miss(until=None)

    def _miss(self, *, until: int | None) -> None:
        while self.line and (until is None or self.line.no < until):
            self.report.add("missing", f"seal {self.line.no}", "it was anchored and is not in the database")
            self.line = next(self.lines, None)
