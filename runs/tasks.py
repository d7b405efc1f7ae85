"""Celery's way in. A task takes a run's id, or nothing; everything else it reads from the database."""

import os
import socket
import time
from uuid import UUID

from celery import shared_task
from django.conf import settings

from runs.engine.draining import is_draining
from runs.engine.executor import execute as execute_run
from runs.engine.executor import execute_oldest
from runs.idempotency import forget_old
from runs.services.beats import note_alive
from runs.services.posting import post_next, sweep_posts
from runs.services.retention import apply_retention
from runs.services.sweeping import stranded
from runs.services.sweeping import sweep as sweep_runs


@shared_task(name="runs.tasks.execute")
def execute(run_id: str) -> None:
    """Go on with a run, and then with whatever has waited longest, for at most a slice's time."""
    worker = f"{socket.gethostname()}:{os.getpid()}"
    ends = time.monotonic() + settings.FERMATA_SLICE_SECONDS
    execute_run(UUID(run_id), worker=worker)
    while not is_draining() and time.monotonic() < ends and execute_oldest(worker=worker):
        pass


@shared_task(name="runs.tasks.sweep")
def sweep() -> None:
    """Every two seconds, on a queue and in a process of its own; that it runs proves that beat does."""
    note_alive(name="beat")
    sweep_runs()
    sweep_posts()


@shared_task(name="runs.tasks.post")
def post(agent_id: str) -> None:
    """Tell an agent what is due, one post after the other, for at most a slice's time. On a queue of its own: it waits
    for machines elsewhere, and no run should wait with it."""
    ends = time.monotonic() + settings.FERMATA_SLICE_SECONDS
    while post_next(agent_id=UUID(agent_id)) and not is_draining() and time.monotonic() < ends:
        pass


@shared_task(name="runs.tasks.forget_old_requests")
def forget_old_requests() -> None:
    """Once an hour: answers that nobody will ask for again."""
    forget_old()


@shared_task(name="runs.tasks.find_stranded")
def find_stranded() -> None:
    """Once a minute: a run that is suspended with nothing open would sleep for ever."""
    stranded()


@shared_task(name="runs.tasks.prune")
def prune() -> None:
    """Once a night: what the settings no longer keep."""
    apply_retention()
