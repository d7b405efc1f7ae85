"""What is wrong with a trail: two checkers that are fed its records in order and need neither database nor key."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from approvals.audit.events import EventType
from approvals.audit.hashing import NO_HASH, Seal, SignedSeal, body_commit, event_hash, merkle_root, root_by_path
from approvals.audit.keys import is_signed
from approvals.audit.records import Record

KEPT = 1000  # findings are all counted; this many are kept


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is changed, missing, added, reordered or unproven; `where` names the event, leaf, seal or line."""

    kind: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}: {self.what}"


@dataclass
class Report:
    """What a check saw. The trail is sound when `count` is 0; `notes` are for the reader and no reproach."""

    events: int = 0
    seals: int = 0
    unsealed: int = 0
    erased: int = 0
    count: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, kind: str, where: str, what: str) -> None:
        self.count += 1
        if len(self.findings) < KEPT:
            self.findings.append(Finding(kind, where, what))


def check_event(record: Record, report: Report) -> None:
    """What can be said of one event alone."""
    link, content = record.link, record.content
    report.events += 1
    if event_hash(link) != record.hash:
        report.add("changed", _name(record), "the event does not have its hash")
    if content is None:
        report.erased += 1
    elif body_commit(content.salt, content.body) != link.body_commit:
        report.add("changed", _name(record), "the body is not the one that was committed to")


def check_seal(signed: SignedSeal, trusted: frozenset[bytes], report: Report) -> None:
    """What can be said of one seal alone."""
    seal = signed.seal
    report.seals += 1
    if not is_signed(seal.message(), signed.signature, seal.key):
        report.add("changed", f"seal {seal.no}", "the signature is not by its key, or not of this seal")
    elif seal.key not in trusted:
        report.add("unproven", f"seal {seal.no}", "it is signed by a key that is not trusted here")


class WholeTrail:
    """Checks every event and seal of a trail, given in the order of leaves, each seal before its events.

    Events that are not sealed yet come last, in the order of their ids.
    """

    def __init__(self, trusted: frozenset[bytes], report: Report) -> None:
        self.trusted = trusted
        self.report = report
        self.seal: Seal | None = None
        self.hashes: list[bytes] = []
        self.next_leaf = 1
        self.chains: dict[str, tuple[int, bytes]] = {}
        self.bodyless: dict[tuple[str, int], Record] = {}

    def take_seal(self, signed: SignedSeal) -> None:
        self._close_seal()
        seal, before = signed.seal, self.seal
        check_seal(signed, self.trusted, self.report)
        expected = before.no + 1 if before else 1
        if seal.no > expected:
            self.report.add("missing", f"seal {expected}", f"the next one is seal {seal.no}")
        elif seal.no < expected:
            self.report.add("reordered", f"seal {seal.no}", f"seal {expected} should come here")
        elif seal.prev != (before.digest() if before else NO_HASH):
            self.report.add("changed", f"seal {seal.no}", "the seal before it is not the one that it was linked to")
        self.seal, self.hashes = seal, []

    def take_event(self, record: Record) -> None:
        check_event(record, self.report)
        self._check_leaf(record)
        self._check_link(record)
        if record.content is None:
            self.bodyless[record.link.chain, record.link.n] = record
        elif record.link.type == EventType.AUDIT_ERASED:
            self._explain(record, record.content.body)

    def finish(self) -> None:
        self._close_seal()
        for record in self.bodyless.values():
            self.report.add("missing", _name(record), "its body is gone and no erasure lists it")

    def _check_leaf(self, record: Record) -> None:
        leaf = record.leaf
        if leaf is None:
            self.report.unsealed += 1
            return
        if leaf > self.next_leaf:
            self.report.add("missing", f"leaf {_span(self.next_leaf, leaf - 1)}", f"the next event is {_name(record)}")
        elif leaf < self.next_leaf:
            self.report.add("reordered", _name(record), f"leaf {self.next_leaf} should come here")
        self.next_leaf = leaf + 1
        if self.seal and self.seal.first <= leaf <= self.seal.last:
            self.hashes.append(record.hash)
        else:
            self.report.add("added", _name(record), "it is numbered as if it were sealed and no seal covers it")

    def _check_link(self, record: Record) -> None:
        link = record.link
        last_n, last_hash = self.chains.get(link.chain, (0, NO_HASH))
        if link.n > last_n + 1:
            gap = _span(last_n + 1, link.n - 1)
            self.report.add("missing", f"{link.chain} {gap}", f"the next event of the chain is {link.n}")
        elif link.n <= last_n:
            self.report.add("reordered", _name(record), f"event {last_n + 1} of the chain should come here")
        elif link.prev != last_hash:
            self.report.add("changed", _name(record), f"event {last_n} before it is not the one that it was linked to")
        self.chains[link.chain] = (link.n, record.hash)

    def _explain(self, erasure: Record, body: str) -> None:
        """An erasure comes after what it erased, so its events are known by now."""
        try:
            listed = [(chain, n) for chain, numbers in json.loads(body)["events"].items() for n in numbers]
        except (ValueError, KeyError, TypeError, AttributeError):
            self.report.add("changed", _name(erasure), "it does not list the events that it erased")
            return
        for place in listed:
            self.bodyless.pop(place, None)

    def _close_seal(self) -> None:
        seal = self.seal
        if not seal:
            return
        complete = len(self.hashes) == seal.last - seal.first + 1
        if complete and merkle_root(self.hashes) != seal.root:
            self.report.add(
                "changed",
                f"seal {seal.no}",
                f"leaf {_span(seal.first, seal.last)}: not the events, or not in the order, that were sealed",
            )
        elif not complete and self.next_leaf <= seal.last:
            self.report.add("missing", f"leaf {_span(self.next_leaf, seal.last)}", f"seal {seal.no} covers it")
            self.next_leaf = seal.last + 1


class ChosenEvents:
    """Checks a filtered export: that each event is in the sealed trail, not that none is left out."""

    def __init__(self, trusted: frozenset[bytes], report: Report) -> None:
        self.trusted = trusted
        self.report = report
        self.seal: Seal | None = None

    def take_seal(self, signed: SignedSeal) -> None:
        check_seal(signed, self.trusted, self.report)
        self.seal = signed.seal

    def take_event(self, record: Record) -> None:
        check_event(record, self.report)
        if not self.seal or self._root(self.seal, record) != self.seal.root:
            self.report.add("added", _name(record), "it is not under the seal that it comes with")

    def finish(self) -> None:
        if self.report.erased:
            self.report.notes.append(f"{self.report.erased} events have no body; a filtered export cannot say why.")

    @staticmethod
    def _root(seal: Seal, record: Record) -> bytes | None:
        path: Sequence[bytes] | None = record.path
        if path is None or record.leaf is None or not seal.first <= record.leaf <= seal.last:
            return None
        return root_by_path(record.hash, record.leaf - seal.first, seal.last - seal.first + 1, path)


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first} to {last}"


def _name(record: Record) -> str:
    name = f"{record.link.chain} {record.link.n}"
    return name if record.leaf is None else f"{name} (leaf {record.leaf})"
