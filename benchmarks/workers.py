"""Celery workers on the benchmark's queue, each a process of its own that ends with the measurement."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.conf import settings

from fermata.celery import app

CELERY = (sys.executable, "-m", "celery", "-A", "fermata", "--quiet", "worker", "--loglevel", "ERROR")


@contextmanager
def workers(*, processes: int = 1, concurrency: int) -> Iterator[None]:
    """Workers that are ready; `listen` lets them take messages, which at first they do not."""
    queue = settings.CELERY_TASK_DEFAULT_QUEUE
    names = [f"benchmark-{number}@localhost" for number in range(processes)]
    pool = ("--pool", "prefork", "--concurrency", str(concurrency), "-Q", queue, "--without-gossip", "--without-mingle")
    started = [subprocess.Popen([*CELERY, *pool, "-n", name], stdout=subprocess.DEVNULL) for name in names]
    try:
        ends = time.monotonic() + 60
        while len(app.control.ping(destination=names, timeout=0.5)) < processes:
            if time.monotonic() > ends:
                raise TimeoutError("the workers did not start")
        stop_listening()
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def listen() -> None:
    """Let the workers take messages."""
    app.control.add_consumer(settings.CELERY_TASK_DEFAULT_QUEUE, reply=True)


def stop_listening() -> None:
    """Let them take no more."""
    app.control.cancel_consumer(settings.CELERY_TASK_DEFAULT_QUEUE, reply=True)


def forget_doorbells() -> None:
    """Throw away the messages that nobody has taken."""
    app.control.purge()
