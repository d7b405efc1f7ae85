"""The worker processes, as the certifying process sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import IO, Any, Self, cast
from uuid import UUID

from django.conf import settings

START = """
import django, sys
django.setup()
from fermata.certify import worker
worker.main(sys.argv[1], int(sys.argv[2]))
"""


class WorkerFailed(Exception):
    """A worker process ended by itself; what it had to say is on standard error."""


class Workers:
    """Forks workers for one module. Its hash seed and its date set it apart from others."""

    def __init__(self, *, module: str, database: str, hash_seed: int, days_ahead: int) -> None:
        env = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "fermata.settings",
            "DATABASE_URL": database,
            "PYTHONHASHSEED": str(hash_seed),
            "FERMATA_FAILPOINTS": "1",
            "FERMATA_SLICE_SECONDS": "0",  # a slice is a phase
            "FERMATA_LOG_LEVEL": "CRITICAL",
        }
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter
            [sys.executable, "-c", START, module, str(days_ahead)],
            cwd=settings.BASE_DIR,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._questions, self._answers = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)

    def __enter__(self) -> Self:
        self._answer()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()  # the end of its input ends it

    def execute(self, run_id: UUID, failpoint: str) -> dict[str, int] | None:
        """Execute one slice; how often each failpoint was passed, or None: the worker died at `failpoint`."""
        self._questions.write(f"{run_id} {failpoint}\n")
        self._questions.flush()
        passed: dict[str, int] | None = self._answer()
        return passed

    def _answer(self) -> Any:
        line = self._answers.readline()
        if not line:
            raise WorkerFailed
        return json.loads(line)
