"""A process that forks workers on request: each can be killed without paying for Django's start.

Reads lines `RUN FAILPOINT` (`-`: none), lets a child execute one slice of the run, and answers each with one line of
JSON: how often the child passed each failpoint, or null if it was killed.
"""

import importlib
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from uuid import UUID

import time_machine

from fermata.certify.standins import Samples, ask_nobody_by_name, replace_tools
from runs.engine import failpoints
from runs.engine.executor import execute


def main(module: str, days_ahead: int) -> None:
    """Serve until the end of the input. `days_ahead` moves Python's clock, not the database's."""
    replace_tools(Samples.of(importlib.import_module(module)))
    ask_nobody_by_name()
    if days_ahead:
        time_machine.travel(datetime.now(UTC) + timedelta(days=days_ahead), tick=True).start()
    _say("ready")
    for line in sys.stdin:
        run_id, failpoint = line.split()
        pid = os.fork()
        if pid == 0:
            _work(UUID(run_id), failpoint)
        _, status = os.waitpid(pid, 0)
        if not os.WIFEXITED(status):
            _say(None)
        elif os.WEXITSTATUS(status):
            raise SystemExit(f"a worker failed in run {run_id}")


def _work(run_id: UUID, failpoint: str) -> None:
    """The child. It must not come back to the loop, whatever happens."""
    code = 1
    try:
        os.environ["FERMATA_FAILPOINT"] = failpoint
        execute(run_id, worker=f"certify:{os.getpid()}")
        _say(failpoints.passed)
        code = 0
    finally:
        os._exit(code)


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
