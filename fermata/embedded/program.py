"""What a supervisor needs to know to keep one process running."""

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fermata.embedded.account import Account


@dataclass(frozen=True)
class Program:
    """One long-lived process.

    `env` is its whole environment. `account` is who it runs as (None: like its parent), `folder` its
    working directory (None: like its parent's). `stop` asks it to end in good order; it is also what the
    kernel sends if the parent dies. `prepare` is called before every start and clears away what a crash
    left. `socket` appears after the start and must stay: if it goes or is replaced, nobody can reach the
    process any more.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    account: Account | None = None
    folder: Path | None = None
    stop: signal.Signals = signal.SIGTERM
    prepare: Callable[[], None] | None = None
    socket: Path | None = None
    echo: bool = True
    """Whether its log is shown at the terminal as well."""


@dataclass(frozen=True)
class Server:
    """An embedded server: its program, and how to tell that it answers."""

    program: Program
    ready: Callable[[], bool]
    after_start: Callable[[], None] | None = None
    """Called once, when it answers for the first time."""
