"""One thread and one connection per process that extend the leases of the runs at work in it.

It stops extending a run whose call has outlived its deadline: a stuck call must not hold its run for ever.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings

from runs.engine.connection import LOST, EngineConnection
from runs.engine.draining import is_draining
from runs.engine.effects import boot_time
from runs.engine.ownership import Ownership

log = logging.getLogger(__name__)

EXTEND = """
    UPDATE runs_head SET lease = (SELECT fermata_now()) + %s, draining = %s
    WHERE run_id = %s AND epoch = %s AND lease > (SELECT fermata_now())
"""


class Heartbeat:
    def __init__(self) -> None:
        self._watched: set[Ownership] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pid = 0

    @contextmanager
    def watching(self, own: Ownership) -> Iterator[None]:
        """Keep the lease of `own` alive meanwhile."""
        self._start()
        with self._lock:
            self._watched.add(own)
        try:
            yield
        finally:
            with self._lock:
                self._watched.discard(own)

    def _start(self) -> None:
        with self._lock:
            if self._pid == os.getpid() and self._thread is not None and self._thread.is_alive():
                return
            if self._pid != os.getpid():  # a fork has the set, and not the thread
                self._watched = set()
            self._pid = os.getpid()
            self._thread = threading.Thread(target=self._beat, name="fermata-heartbeat", daemon=True)
            self._thread.start()

    def _beat(self) -> None:
        connection = EngineConnection()
        pause = threading.Event()
        while True:
            pause.wait(settings.FERMATA_LEASE_SECONDS / 4)
            with self._lock:
                watched = list(self._watched)
            for own in watched:
                if own.call_ends is not None and boot_time() > own.call_ends:
                    continue
                try:
                    connection.execute(
                        EXTEND,
                        (timedelta(seconds=settings.FERMATA_LEASE_SECONDS), is_draining(), own.run_id, own.epoch),
                    )
                except LOST as error:
                    log.warning("heartbeat of run %s failed: %s", own.run_id, error)


heartbeat = Heartbeat()
