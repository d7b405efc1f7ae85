"""DBOS Transact, with its defaults but for the admin server and the console's log level."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any
from uuid import uuid4

import psycopg
from dbos import DBOS, SetWorkflowID

from benchmarks.payload import PAYMENTS, database_bytes, pay, payments, random_text
from benchmarks.peers import WARM_UP, WARM_UP_RUNS
from benchmarks.process import resident_bytes, threads

LONG = 600.0  # seconds that a workflow waits for its message


@DBOS.step()
def payload() -> str:
    return random_text()


@DBOS.step()
def payment(url: str) -> None:
    pay(url, str(DBOS.workflow_id))


@DBOS.workflow()
def loop(count: int) -> None:
    for _ in range(count):
        payload()


@DBOS.workflow()
def gate(data: str, payments_url: str | None) -> float:
    DBOS.recv("approval", timeout_seconds=LONG)
    at = time.time()
    if payments_url is not None:
        payment(payments_url)
    return at


def steps(url: str, count: int) -> dict[str, float]:
    """Milliseconds per step that returns 1 kB."""
    with _launched(url):
        loop(WARM_UP)
        began = time.perf_counter()
        loop(count)
        return {"ms": (time.perf_counter() - began) / count * 1000}


def parked(url: str, runs: int) -> dict[str, float]:
    with _launched(url):
        warm = _park(1)
        before, memory, held = database_bytes(url), resident_bytes(), threads()
        handles = _park(runs)
        found = {
            "bytes": (database_bytes(url) - before) / runs,
            "threads": threads() - held,
            "memory": resident_bytes() - memory,
        }
        _send([*warm, *handles])
        return found


def resume(url: str, runs: int) -> dict[str, float]:
    """Runs per second from the first message sent to the last workflow's end."""
    with _launched(url):
        for count in (WARM_UP_RUNS, runs):
            handles = _park(count)
            began = time.perf_counter()
            _send(handles)
            for handle in handles:
                handle.get_result()
        return {"rate": runs / (time.perf_counter() - began)}


def wake(url: str, samples: int) -> dict[str, list[float]]:
    with _launched(url):
        times = []
        for handle in _park(samples):
            DBOS.send(handle.workflow_id, "approved", topic="approval")
            sent = time.time()
            times.append((handle.get_result() - sent) * 1000)
        return {"ms": times}


def twice(url: str, runs: int) -> dict[str, int]:
    """Their process died; two others are told to resume each of the approved runs at the same time."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(PAYMENTS)
    context = get_context("spawn")
    names = [str(uuid4()) for _ in range(runs)]
    parker = context.Process(target=_park_and_die, args=(url, names))
    parker.start()
    parker.join(120)
    together = context.Barrier(2)
    workers = [context.Process(target=_resume_all, args=(url, names, together, number)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    made = payments(url)
    return {"runs": runs, "payments": sum(made.get(name, 0) for name in names)}


def _resume_all(url: str, names: list[str], together: Any, number: int) -> None:
    with _launched(url, executor_id=f"worker-{number}"):
        for name in names:
            together.wait(60)
            DBOS.send(name, "approved", topic="approval")
            DBOS.resume_workflow(name).get_result()


def _park_and_die(url: str, names: list[str]) -> None:
    with _launched(url):
        for name in names:
            with SetWorkflowID(name):
                DBOS.start_workflow(gate, random_text(10_000), url)
        _until_waiting(len(names))
        os._exit(0)


@contextmanager
def _launched(url: str, **more: Any) -> Iterator[None]:
    DBOS(
        config={
            "name": "benchmark",
            "system_database_url": _url(url),
            "console_log_level": "ERROR",
            "log_level": "ERROR",
            "max_executor_threads": 400,
            **more,
        }
    )
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


def _url(url: str) -> str:
    return url.replace("postgres://", "postgresql://", 1)


def _park(runs: int) -> list[Any]:
    handles = [DBOS.start_workflow(gate, random_text(10_000), None) for _ in range(runs)]
    _until_waiting(runs)
    return handles


def _until_waiting(runs: int) -> None:
    time.sleep(1 + runs / 100)


def _send(handles: list[Any]) -> None:
    for handle in handles:
        DBOS.send(handle.workflow_id, "approved", topic="approval")
