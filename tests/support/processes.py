"""Processes that tests start: each in its own session, each ended by its own id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from django.db import connection

from fermata.celery import app

ROOT = Path(__file__).resolve().parents[2]
BROKER_TIMEOUT = 5.0  # seconds: a busy machine is no dead broker, and not every test has a sweeper for a lost doorbell


def environment(**extra: str) -> dict[str, str]:
    """The environment of a process that shares this test's database and broker."""
    settings = connection.settings_dict
    host = (settings["HOST"] or "").replace("/", "%2F")
    port = f":{settings['PORT']}" if settings["PORT"] else ""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "fermata.settings",
        "DATABASE_URL": f"postgres://{settings['USER']}:{settings['PASSWORD']}@{host}{port}/{settings['NAME']}",
        "CELERY_BROKER_URL": app.conf.broker_url,
        "PYTHONUNBUFFERED": "1",
        "FERMATA_LEASE_SECONDS": "2",
        "FERMATA_BROKER_TIMEOUT": str(BROKER_TIMEOUT),
        **extra,
    }


class Process:
    """A child whose output goes to a file."""

    def __init__(self, *command: str, log: Path, **extra: str) -> None:
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env=environment(**extra),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def wait(self, seconds: float = 60) -> int:
        """Its exit code; -9 after SIGKILL."""
        return self._popen.wait(seconds)

    def signal(self, number: int) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        """SIGKILL the process and everything that it started, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait(30)

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for what is left after ten seconds."""
        if self.running:
            self._popen.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(10)
        self.kill()
