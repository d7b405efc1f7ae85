"""Finding and ending processes that an earlier start left behind. Without Linux's /proc it finds none.

A recorded pid may belong to somebody else by now, and a dead leader's children have no record at all. So
processes are known by what they carry: ours by a variable in their environment, the servers, which
overwrite theirs with a title, by the data folder that they stand in.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MARK = "FERMATA_INSTANCE"
PROC = Path("/proc")


def _others() -> Iterator[Path]:
    own = str(os.getpid())
    return (entry for entry in PROC.glob("[0-9]*") if entry.name != own)


def marked(home: Path) -> list[int]:
    """Processes that were started for the instance at `home`, and all that these have started."""
    mark = f"{MARK}={home}".encode()
    found = []
    for entry in _others():
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # gone, or another user's
            continue
    return found


def standing_in(folder: Path) -> list[int]:
    """Processes whose working directory is `folder`."""
    try:
        wanted = folder.stat()
    except FileNotFoundError:
        return []
    found = []
    for entry in _others():
        try:
            if os.path.samestat((entry / "cwd").stat(), wanted):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def end(find: Callable[[], list[int]], first: signal.Signals, grace: float) -> int:
    """Send `first` to all that `find` finds, and after `grace` seconds SIGKILL; return how many there were.

    `find` is asked again before every signal, so that a number that was given to another process is left
    alone.
    """
    count = len(find())
    _signal(find(), first)
    if not _gone(find, grace):
        _signal(find(), signal.SIGKILL)
        _gone(find, 5)
    return count


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _gone(find: Callable[[], list[int]], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while find():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def started_at(pid: int) -> int | None:
    """When the process began, in clock ticks since boot: its identity, with the pid. None if it is gone."""
    try:
        stat = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])
