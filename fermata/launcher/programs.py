"""Fermata's own processes."""

import os
import sys
from collections.abc import Mapping, Sequence

from fermata.embedded.instance import Instance
from fermata.embedded.leftovers import MARK
from fermata.embedded.program import Program


def environment(instance: Instance) -> dict[str, str]:
    """The variables for everything that uses this instance's services."""
    return {
        **os.environ,
        "FERMATA_HOME": str(instance.home),
        MARK: str(instance.home),
        "PYTHONUNBUFFERED": "1",
    }


def manage(*arguments: str) -> Sequence[str]:
    return [sys.executable, "manage.py", *arguments]


def programs(instance: Instance, port: int) -> Sequence[Program]:
    """Web, the workers and beat, in the order in which they are started."""
    env = environment(instance)
    web = ["uvicorn", "fermata.asgi:application", "--host", "127.0.0.1", "--port", str(port)]
    pool = os.environ.get("FERMATA_WORKER_POOL") or "prefork"
    concurrency = os.environ.get("FERMATA_WORKER_CONCURRENCY") or "2"
    return [
        _program("web", web, env),
        _program("worker", _celery_worker("runs", "--pool", pool, "--concurrency", concurrency), env),
        _program("sweeper", _celery_worker("sweeper", "--pool", "solo"), env),
        _program("beat", [*_CELERY, "beat", "--schedule", str(instance.home / "beat-schedule"), "--pidfile="], env),
    ]


_CELERY = ("celery", "-A", "fermata")


def _celery_worker(queue: str, *pool: str) -> Sequence[str]:
    return [
        *_CELERY,
        "worker",
        "-Q",
        queue,
        "-n",
        f"{queue}@%h",
        *pool,
        "--without-gossip",
        "--without-mingle",
    ]


def _program(name: str, module: Sequence[str], env: Mapping[str, str]) -> Program:
    # FERMATA_PROCESS lets the settings give each kind of process its own database connections.
    return Program(name, [sys.executable, "-m", *module], env={**env, "FERMATA_PROCESS": name})
