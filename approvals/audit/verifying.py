"""Checking the trail: in the database, or in an exported file with nothing else at hand."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from django.db import connection

from approvals.audit import anchors, jsonl
from approvals.audit.checks import ChosenEvents, Report, WholeTrail
from approvals.audit.hashing import Seal
from approvals.audit.jsonl import End, Header, NotALine
from approvals.audit.keys import is_signed
from approvals.audit.records import Record, SignedSeal, one_moment, records, with_seals
from approvals.models import AuditEvent

# Every table of the trail, and how many ENABLE ALWAYS triggers guard it.
GUARDS = {
    "approvals_auditevent": 2,
    "approvals_auditbody": 3,
    "approvals_auditerasure": 2,
    "approvals_auditleaf": 3,
    "approvals_auditseal": 2,
}


def verify_database(trusted: frozenset[bytes]) -> Report:
    """Check every event, seal and anchor. `trusted`: the public keys whose seals count."""
    report = Report()
    trail = WholeTrail(trusted, report)
    with one_moment():
        _check_guards(report)
        anchored = _Anchors(report)
        for entry in with_seals(records(AuditEvent.objects.filter(leaf__no__isnull=False).order_by("leaf__no"))):
            if isinstance(entry, SignedSeal):
                trail.take_seal(entry)
                anchored.take(entry.seal)
            else:
                trail.take_event(entry)
        for record in records(AuditEvent.objects.filter(leaf__isnull=False, leaf__no__isnull=True).order_by("id")):
            trail.take_event(record)
        for record in records(AuditEvent.objects.filter(leaf__isnull=True).order_by("id")):
            report.add("added", f"{record.link.chain} {record.link.n}", "it never went through the trail's own door")
        trail.finish()
        anchored.finish()
    return report


def verify_file(path: Path, trusted: frozenset[bytes]) -> Report:
    """Check an exported JSONL file, line by line; no database is asked. Raises OSError."""
    with path.open("rb") as file:
        return _verify_lines(file, trusted)


def _verify_lines(lines: Iterable[bytes], trusted: frozenset[bytes]) -> Report:
    report = Report()
    trail: WholeTrail | ChosenEvents = WholeTrail(trusted, report)
    digest = sha256()
    end: End | None = None
    for number, raw in enumerate(lines, 1):
        where = f"line {number}"
        try:
            entry = jsonl.read_line(raw.decode())
        except (NotALine, UnicodeDecodeError) as error:
            report.add("changed", where, f"it is not a line of an export ({error})")
            entry = None
        if number == 1 and not isinstance(entry, Header):
            report.add("missing", where, "a header belongs here")
        if end:
            report.add("added", where, "it comes after the end")
        match entry:
            case Header() if number > 1:
                report.add("added", where, "a header belongs on the first line only")
            case Header(complete=False):
                report.notes.append(jsonl.FILTERED)
                trail = ChosenEvents(trusted, report)
            case SignedSeal():
                trail.take_seal(entry)
            case Record():
                trail.take_event(entry)
            case End():
                end = entry
                _check_end(entry, digest.digest(), trusted, report)
        digest.update(raw)
    trail.finish()
    if not end:
        report.add("missing", "the end", "the file stops before its last line")
    return report


def _check_end(end: End, digest: bytes, trusted: frozenset[bytes], report: Report) -> None:
    if (end.events, end.seals) != (report.events, report.seals):
        what = f"the file has {report.events} events and {report.seals} seals; {end.events} and {end.seals} were written"
        report.add("missing" if report.events < end.events else "added", "the end", what)
    if end.sha256 != digest:
        report.add("changed", "the file", "it is not byte for byte what was exported")
    if not is_signed(end.message(), end.signature, end.key):
        report.add("changed", "the end", "the signature is not by its key, or not of this file")
    elif end.key not in trusted:
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

    def __init__(self, report: Report) -> None:
        self.report = report
        path = anchors.anchor_path()
        self.lines = anchors.read(path) if path else iter(())
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
