"""Real Celery workers on the test database, each in a process of its own."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from tests.support.processes import Process
from tests.support.waiting import until


class Worker(Process):
    def wait_until_ready(self) -> Worker:
        until(lambda: " ready." in self.output() or not self.running, what="a worker that is ready")
        assert self.running, self.output()
        return self


class WorkerFactory:
    """Starts workers, and ends them all with the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        self._started: list[Process] = []

    def start(self, *, queues: str = "runs", pool: str = "solo", concurrency: int = 1, **extra: str) -> Worker:
        """A worker that is ready. `extra` goes into its environment."""
        number = next(self._numbers)
        worker = Worker(
            *("-m", "celery", "-A", "fermata", "worker", "-Q", queues, "--pool", pool, "-c", str(concurrency)),
            *("--loglevel", "INFO", "--without-gossip", "--without-mingle", "-n", f"test-{number}@localhost"),
            log=self._folder / f"worker-{number}.log",
            **extra,
        )
        self._started.append(worker)
        return worker.wait_until_ready()

    def start_sweeper(self, **extra: str) -> list[Process]:
        """Beat and the sweeper's worker."""
        number = next(self._numbers)
        schedule = str(self._folder / f"beat-{number}")
        beat = Process(
            *("-m", "celery", "-A", "fermata", "beat", "--schedule", schedule, "--pidfile="),
            log=self._folder / f"beat-{number}.log",
            **extra,
        )
        self._started.append(beat)
        return [beat, self.start(queues="sweeper", **extra)]

    def stop_all(self) -> None:
        for process in self._started:
            process.stop()
