"""One LISTEN connection per process, and everybody who waits for what it hears."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from runs.engine.connection import connection_parameters

log = logging.getLogger(__name__)

CHANNELS = {"fermata_approval": "approval", "fermata_run": "run"}
EVERYTHING = ("", "")  # something was missed: look again at all of it
MOST_PENDING = 50
LONGEST_PAUSE = 5.0

Change = tuple[str, str]  # ("approval" or "run", id)


class Waiter:
    """What one client has not been told yet. Bounded: who falls behind is told to look again at everything."""

    def __init__(self) -> None:
        self._changes: set[Change] = set()
        self._woken = asyncio.Event()

    def tell(self, change: Change) -> None:
        if change == EVERYTHING or len(self._changes) >= MOST_PENDING:
            self._changes = {EVERYTHING}
        elif EVERYTHING not in self._changes:
            self._changes.add(change)
        self._woken.set()

    def wake(self) -> None:
        self._woken.set()

    async def wait(self, seconds: float) -> None:
        """Return at the next change, or after `seconds`."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._woken.wait(), seconds)

    def take(self) -> set[Change]:
        self._woken.clear()
        changes, self._changes = self._changes, set()
        return changes


class Hub:
    """Hands every change to those who wait for it. Lives on one event loop."""

    def __init__(self) -> None:
        self._waiters: dict[Change | None, set[Waiter]] = defaultdict(set)
        self._listening: asyncio.Task[None] | None = None
        self.closed = False

    def open(self) -> None:
        self.closed = False
        self._listening = asyncio.ensure_future(self._listen())

    def close(self) -> None:
        """End every wait, at once."""
        self.closed = True
        if self._listening is not None:
            self._listening.cancel()
        for waiter in self._everybody():
            waiter.wake()

    @contextmanager
    def waiting(self, change: Change | None = None) -> Iterator[Waiter]:
        """A waiter for one approval or run; for everything when None."""
        waiter = Waiter()
        self._waiters[change].add(waiter)
        try:
            yield waiter
        finally:
            self._waiters[change].discard(waiter)
            if not self._waiters[change]:
                del self._waiters[change]

    def tell(self, change: Change) -> None:
        for waiter in self._everybody() if change == EVERYTHING else self._waiting_for(change):
            waiter.tell(change)

    def _waiting_for(self, change: Change) -> set[Waiter]:
        return self._waiters.get(change, set()) | self._waiters.get(None, set())

    def _everybody(self) -> set[Waiter]:
        return {waiter for waiters in self._waiters.values() for waiter in waiters}

    async def _listen(self) -> None:
        pause = 0.25
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(**connection_parameters()) as connection:
                    for channel in CHANNELS:
                        await connection.execute(f"LISTEN {channel}")
                    self.tell(EVERYTHING)  # whatever was said while nobody listened
                    pause = 0.25
                    async for notice in connection.notifies():
                        self.tell((CHANNELS[notice.channel], notice.payload))
            except psycopg.OperationalError as error:
                log.warning("not listening to the database: %s", error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
