"""The doorbell: the only place that names this app's Celery tasks.

A message carries the id of a run, or of an agent to be told something, and nothing else. It may be lost, late or
doubled without harm: the sweeper rings again.
A broker that is down or silent must not slow anybody: after a failure nothing is sent for `BREAK_SECONDS`, and whoever
decides does not wait for the broker at all.
"""

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerError

log = logging.getLogger(__name__)

BREAK_SECONDS = 5.0
POST_EXPIRES = 60.0

Doorbell = tuple[Callable[[UUID], bool], UUID]


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
        self._waiting: queue.SimpleQueue[Doorbell] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._pid = 0

    def ring(self, doorbell: Doorbell) -> None:
        with self._lock:
            if self._pid != os.getpid():  # the first doorbell, or a fork, which has no thread
                self._pid, self._waiting = os.getpid(), queue.SimpleQueue()
                threading.Thread(target=self._run, args=(self._waiting,), name="doorbell", daemon=True).start()
        self._waiting.put(doorbell)

    def _run(self, waiting: queue.SimpleQueue[Doorbell]) -> None:
        while True:
            ring, subject = waiting.get()
            try:
                ring(subject)
            except Exception:
                log.exception("the doorbell of %s failed", subject)


ringer = Ringer()


def ring(run_id: UUID) -> None:
    """Tell a worker, once the current transaction has committed, that the run is ready."""
    transaction.on_commit(lambda: ringer.ring((ring_now, run_id)), robust=True)


def ring_now(run_id: UUID) -> bool:
    """Tell a worker that the run is ready. False: the broker did not take it, and the sweeper will ring later."""
    return _send("runs.tasks.execute", run_id, f"run {run_id}")


def ring_post(agent_id: UUID) -> None:
    """Tell whoever posts, once the current transaction has committed, that there is something to tell the agent."""
    transaction.on_commit(lambda: ringer.ring((ring_post_now, agent_id)), robust=True)


def ring_post_now(agent_id: UUID) -> bool:
    """The same at once. A message that nobody takes for a while is not worth keeping: there will be another."""
    return _send("runs.tasks.post", agent_id, f"agent {agent_id}", expires=POST_EXPIRES)


def _send(task: str, subject: UUID, named: str, **options: Any) -> bool:
    if breaker.is_open():
        return False
    try:
        current_app.signature(task, args=(str(subject),)).apply_async(retry=False, **options)
    except (BrokerError, OSError) as error:
        breaker.trip()
        log.warning("the broker did not take the doorbell of %s: %s", named, error)
        return False
    return True
