"""The lock that makes a home belong to one supervisor, for as long as that one lives."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fermata.embedded.leftovers import started_at


@dataclass(frozen=True)
class Holder:
    """Who holds the lock: a live process, and the port that it serves (None: no port)."""

    pid: int
    port: int | None


class Locked(Exception):
    """Somebody else holds the lock; `holder` is None in the moment before they have written who they are."""

    def __init__(self, holder: Holder | None) -> None:
        super().__init__(holder)
        self.holder = holder


@contextmanager
def locked(path: Path, *, port: int | None = None) -> Iterator[None]:
    """Hold the lock at `path`, made if need be. Raises Locked at once if it is taken.

    The kernel frees it when the process ends, however it ends; the file stays, since removing it would let
    two processes lock two files of the same name.
    """
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(_holder(path)) from None
        file.truncate(0)
        json.dump({"pid": os.getpid(), "started_at": started_at(os.getpid()), "port": port}, file)
        file.flush()
        yield


def _holder(path: Path) -> Holder | None:
    """Whoever wrote the file last, if that process is still the same one."""
    try:
        written = json.loads(path.read_text())
    except ValueError:
        return None
    if started_at(written["pid"]) != written["started_at"]:
        return None
    return Holder(written["pid"], written["port"])
