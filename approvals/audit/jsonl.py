"""The lines of an exported trail: how each is written, and how it is read again without trusting it.

A header; each seal, then its events; an end that signs the SHA-256 of everything above it. Bytes are hex, times UTC.
Bodies are written as JSON values; reading them brings back the exact canonical text that the commitment is over.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from approvals.audit.hashing import Link, Seal, SignedSeal
from approvals.audit.records import Content, Record, exact, parse_utc, utc
from runs import strictjson

VERSION = 1
HASH_BYTES = 32
LARGEST = 2**63 - 1
MOST_DIGITS = 19
COMPLETE = "Complete: every event up to the last seal is here, and verify_audit finds any that is not."
FILTERED = "Filtered: each event here is proved to be in the sealed trail; it is not proved that none is left out."


class NotALine(ValueError):
    """The line is not one that an export has."""


@dataclass(frozen=True, slots=True)
class Header:
    deployment: str
    exported_at: str
    filters: dict[str, Any]
    complete: bool


@dataclass(frozen=True, slots=True)
class End:
    events: int
    seals: int
    sha256: bytes
    key: bytes
    signature: bytes

    def message(self) -> bytes:
        """The bytes that are signed."""
        return b"fermata.audit.export.1" + self.sha256


def write_header(header: Header) -> str:
    return _line(
        {
            "fermata_audit": VERSION,
            "deployment": header.deployment,
            "exported_at": header.exported_at,
            "complete": header.complete,
            "filters": header.filters,
            "proves": COMPLETE if header.complete else FILTERED,
        }
    )


def write_seal(signed: SignedSeal) -> str:
    seal = signed.seal
    return _line(
        {
            "seal": {
                "no": seal.no,
                "prev": seal.prev.hex(),
                "first": seal.first,
                "last": seal.last,
                "root": seal.root.hex(),
                "at": utc(seal.at),
                "key": seal.key.hex(),
                "signature": signed.signature.hex(),
            }
        }
    )


def write_event(record: Record, path: Sequence[bytes] | None = None) -> str:
    link, content = record.link, record.content
    line: dict[str, Any] = {
        "leaf": record.leaf,
        "chain": link.chain,
        "n": link.n,
        "at": utc(link.at),
        "team": link.team,
        "actor": link.actor,
        "type": link.type,
        "body": _Verbatim(content.body) if content else None,
        "salt": content.salt.hex() if content else None,
        "commit": link.body_commit.hex(),
        "prev": link.prev.hex(),
        "hash": record.hash.hex(),
    }
    if path is not None:
        line["path"] = [step.hex() for step in path]
    return _line(line)


def write_end(end: End) -> str:
    return _line(
        {
            "end": {
                "events": end.events,
                "seals": end.seals,
                "sha256": end.sha256.hex(),
                "key": end.key.hex(),
                "signature": end.signature.hex(),
            }
        }
    )


def read_line(text: str) -> Header | SignedSeal | Record | End:
    """What one line says. Raises `NotALine`."""
    try:
        line = exact(text)
        if "fermata_audit" in line:
            return _header(line)
        if "seal" in line:
            return _seal(line["seal"])
        if "end" in line:
            return _end(line["end"], text)
        return _event(line)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotALine(str(error)) from error


def _header(line: dict[str, Any]) -> Header:
    if line["fermata_audit"] != VERSION:
        raise ValueError(f"it is version {line['fermata_audit']} of the format; this is for {VERSION}")
    if not isinstance(line["complete"], bool):
        raise TypeError("complete is true or false")
    return Header(str(line["deployment"]), str(line["exported_at"]), dict(line["filters"]), line["complete"])


def _seal(line: dict[str, Any]) -> SignedSeal:
    seal = Seal(
        no=_number(line["no"]),
        prev=_hash(line["prev"]),
        first=_number(line["first"]),
        last=_number(line["last"]),
        root=_hash(line["root"]),
        at=parse_utc(line["at"]),
        key=_hash(line["key"]),
    )
    return SignedSeal(seal, bytes.fromhex(line["signature"]))


def _event(line: dict[str, Any]) -> Record:
    link = Link(
        chain=_text(line["chain"]),
        n=_number(line["n"]),
        at=parse_utc(line["at"]),
        team=None if line["team"] is None else _number(line["team"]),
        actor=_text(line["actor"]),
        type=_text(line["type"]),
        body_commit=_hash(line["commit"]),
        prev=_hash(line["prev"]),
    )
    erased = line["body"] is None and line["salt"] is None
    content = None if erased else Content(bytes.fromhex(line["salt"]), strictjson.dumps(line["body"]))
    path = tuple(map(_hash, line["path"])) if "path" in line else None
    return Record(_number(line["leaf"]), link, _hash(line["hash"]), content, path)


def _end(line: dict[str, Any], text: str) -> End:
    end = End(
        events=_number(line["events"], least=0),
        seals=_number(line["seals"], least=0),
        sha256=_hash(line["sha256"]),
        key=_hash(line["key"]),
        signature=bytes.fromhex(line["signature"]),
    )
    if write_end(end) != text:  # no digest is over this line
        raise ValueError("an end is written in one way only")
    return end


class _Verbatim(str):
    """JSON text that is written as it is."""

    __slots__ = ()


def _line(value: dict[str, Any]) -> str:
    members = (
        f"{json.dumps(name)}:{item if isinstance(item, _Verbatim) else json.dumps(item, separators=(',', ':'))}"
        for name, item in value.items()
    )
    return "{" + ",".join(members) + "}\n"


def _number(value: Any, *, least: int = 1) -> int:
    if not isinstance(value, strictjson.Number) or not value.text.isdecimal() or len(value.text) > MOST_DIGITS:
        raise TypeError(f"{value} is not a whole number")
    number = int(value.text)
    if not least <= number <= LARGEST:
        raise ValueError(f"{value} is out of range")
    return number


def _hash(value: str) -> bytes:
    digest = bytes.fromhex(value)
    if len(digest) != HASH_BYTES:
        raise ValueError(f"{value} is not {HASH_BYTES} bytes")
    return digest


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value} is not text")
    value.encode()
    return value
