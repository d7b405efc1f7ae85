"""The programs' logs: each writes to its own file, and the supervisor shows at the terminal what was added.

A program never writes to a pipe of the supervisor's, so neither a halted terminal nor a killed supervisor
halts it.
"""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from fermata.launcher.terminal import say

LARGEST = 10 * 1024 * 1024  # bytes; then the file moves aside, and the one before it goes
COLUMN = 8
LAST_LINES = 20  # in which an error counts as the reason for an end
ERROR = re.compile(r"FATAL|PANIC|[Ee]rror|ERROR")


class Log:
    def __init__(self, path: Path, *, echo: bool) -> None:
        self.path = path
        self._prefix = path.stem.ljust(COLUMN)
        self._echo = echo
        self._position = path.stat().st_size if path.exists() else 0
        self._started = self._position
        self._unfinished = b""

    def open(self) -> BinaryIO:
        """For a program to write to. In append mode, so that the file can be cut short under it."""
        return open(self.path, "ab", opener=lambda path, flags: os.open(path, flags, 0o600))

    def show_new(self) -> None:
        """Show what was written since the last call, in whole lines; empty the file if it is too large."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._position)
                added = file.read()
        except FileNotFoundError:
            return
        self._position += len(added)
        if self._echo and added:
            *lines, self._unfinished = (self._unfinished + added).split(b"\n")
            for line in lines:
                say(f"{self._prefix} | {line.decode(errors='replace')}")
        if self._position > LARGEST:
            with suppress(OSError):  # a full disk must not halt the supervisor
                shutil.copyfile(self.path, self.path.with_suffix(".log.1"))
            os.truncate(self.path, 0)
            self._position = self._started = 0

    def last_words(self) -> str:
        """The last line since the supervisor began that tells of an error, or else the last line; "" if none."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._started)
                written = file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        lines = [line.strip() for line in written.splitlines() if line.strip()][-LAST_LINES:]
        errors = [line for line in lines if ERROR.search(line)]
        return (errors or lines or [""])[-1]
