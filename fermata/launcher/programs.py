"""Fermata's own processes."""

import os
import sys
from collections.abc import Sequence

from fermata.embedded.instance import CHECKOUT, Instance
from fermata.embedded.leftovers import MARK
from fermata.embedded.program import Program

# Whoever starts all this as root knows it, and Celery would say so in eighteen lines.
IGNORED_WARNING = "ignore:You're running the worker with superuser privileges"
CELERY = ("celery", "--quiet", "-A", "fermata")


def environment(instance: Instance) -> dict[str, str]:
    """The variables for everything that uses this instance's services."""
    env = {**os.environ, "FERMATA_HOME": str(instance.home), MARK: str(instance.home), "PYTHONUNBUFFERED": "1"}
    if env.pop("PYTHONDONTWRITEBYTECODE", None):
        # It is meant for the source tree. Compiling everything at each start would double the time it takes.
        env["PYTHONPYCACHEPREFIX"] = str(CHECKOUT / ".venv" / "pycache")
    return env


def manage(*arguments: str) -> Sequence[str]:
    return [sys.executable, "manage.py", *arguments]


def programs(instance: Instance, port: int) -> Sequence[Program]:
    """Web, the workers and beat, in the order in which they are started."""
    pool = os.environ.get("FERMATA_WORKER_POOL") or "prefork"
    concurrency = os.environ.get("FERMATA_WORKER_CONCURRENCY") or "2"
    address = ("--host", "127.0.0.1", "--port", str(port), "--no-access-log")
    warnings = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), IGNORED_WARNING]))
    schedule = instance.home / "beat-schedule"
    modules = {
        "web": ("uvicorn", "fermata.asgi:application", *address),
        "worker": celery_worker("runs", "--pool", pool, "--concurrency", concurrency),
        "sweeper": celery_worker("sweeper", "--pool", "solo"),
        "webhooks": celery_worker("webhooks", "--pool", "threads", "--concurrency", "4"),
        "beat": (*CELERY, "beat", "--schedule", str(schedule), "--pidfile="),
    }
    return [
        Program(
            name,
            argv=[sys.executable, "-m", *module],
            # FERMATA_PROCESS lets the settings give each kind of process database connections of its kind.
            env={**environment(instance), "FERMATA_PROCESS": name, "PYTHONWARNINGS": warnings},
        )
        for name, module in modules.items()
    ]


def celery_worker(queue: str, *pool: str) -> tuple[str, ...]:
    return (*CELERY, "worker", "-Q", queue, "-n", f"{queue}@%h", *pool, "--without-gossip", "--without-mingle")
