"""The doorbell: the only place that names this app's Celery tasks.

A message carries a run's id and nothing else. It may be lost, late or doubled without harm: the sweeper rings again.
A broker that is down or silent must not slow anybody: after a failure nothing is sent for `BREAK_SECONDS`, and whoever
decides does not wait for the broker at all.
"""

import logging
import os
import queue
import threading
import time
from uuid import UUID

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerError

log = logging.getLogger(__name__)

BREAK_SECONDS = 5.0


class Breaker:
    """Open for a while after a failure, so that one silent broker costs one time-out and not one a call."""

    def __init__(self) -> None:
        self._until = 0.0
        self._lock = threading.Lock()

    def is_open(self) -> bool:
        with self._lock:
            return time.monotonic() < self._until

    def trip(self) -> None:
        with self._lock:
            self._until = time.monotonic() + BREAK_SECONDS

    def reset(self) -> None:
        with self._lock:
            self._until = 0.0


breaker = Breaker()


class Ringer:
    """A thread that rings, so that a request never waits for the broker. What it did not get to, the sweeper rings."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[UUID] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pid = 0

    def ring(self, run_id: UUID) -> None:
        with self._lock:
            if self._pid != os.getpid():  # the first doorbell, or a fork, which has no thread
                self._pid, self._waiting = os.getpid(), queue.SimpleQueue()
                threading.Thread(target=self._run, args=(self._waiting,), name="doorbell", daemon=True).start()
        self._waiting.put(run_id)

    def _run(self, waiting: queue.SimpleQueue[UUID]) -> None:
        while True:
            run_id = waiting.get()
            try:
                ring_now(run_id)
            except Exception:
                log.exception("the doorbell of run %s failed", run_id)


ringer = Ringer()


def ring(run_id: UUID) -> None:
    """Tell a worker, once the current transaction has committed, that the run is ready."""
    transaction.on_commit(lambda: ringer.ring(run_id), robust=True)


def ring_now(run_id: UUID) -> bool:
    """Tell a worker that the run is ready. False: the broker did not take it, and the sweeper will ring later."""
    if breaker.is_open():
        return False
    try:
        current_app.signature("runs.tasks.execute", args=(str(run_id),)).apply_async(retry=False)
    except (BrokerError, OSError) as error:
        breaker.trip()
        log.warning("the broker did not take the doorbell of run %s: %s", run_id, error)
        return False
    return True
