"""The anchor: a file outside the database that gets a line for each seal, `NO DIGEST`, and only ever grows.

Whoever has the database and the key could write the whole trail anew; they would also need every copy of this file.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

LINE = re.compile(r"([0-9]{1,19}) ([0-9a-f]{64})\n")
LOGGED = re.compile(r" seal no=([0-9]{1,19}) digest=([0-9a-f]{64})\s")  # as `receivers.syslog_line` has it
TAIL_BYTES = 1024  # holds the last line with room to spare


@dataclass(frozen=True, slots=True)
class Anchored:
    """The seal `no` had this digest when it was made."""

    no: int
    digest: bytes


def anchor_path() -> Path | None:
    """Where the anchor is; None if the deployment has none."""
    return Path(settings.FERMATA_AUDIT_ANCHOR) if settings.FERMATA_AUDIT_ANCHOR else None


def write(path: Path, seals: Iterable[Anchored]) -> None:
    """Add `seals` to the file and wait until they are on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="ascii") as file:
        if file.tell() and not _tail(path).endswith("\n"):
            file.write("\n")  # a crash tore the last line; its seal is written again
        file.writelines(f"{seal.no} {seal.digest.hex()}\n" for seal in seals)
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> Iterator[Anchored]:
    """Every anchored seal, in the order of the file; nothing if there is none. Torn lines are left out."""
    try:
        file = path.open(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return
    with file:
        for line in file:
            yield from _parse(line)


def read_copy(path: Path) -> Iterator[Anchored]:
    """Every seal that a copy of an anchor has, by number: a file like the anchor, or a log with other lines in it too.
    Raises OSError."""
    with path.open(encoding="utf-8", errors="replace") as file:
        found = {seal for line in file for seal in (*_parse(line), *_logged(line))}
    return iter(sorted(found, key=lambda seal: (seal.no, seal.digest)))


def newest(path: Path) -> Anchored | None:
    """The last whole line, without reading the rest."""
    try:
        tail = _tail(path)
    except FileNotFoundError:
        return None
    return next((seal for line in reversed(tail.splitlines(keepends=True)) for seal in _parse(line)), None)


def _parse(line: str) -> Iterator[Anchored]:
    if found := LINE.fullmatch(line):
        yield Anchored(int(found[1]), bytes.fromhex(found[2]))


def _logged(line: str) -> Iterator[Anchored]:
    if found := LOGGED.search(line):
        yield Anchored(int(found[1]), bytes.fromhex(found[2]))


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        return file.read().decode("ascii", errors="replace")
