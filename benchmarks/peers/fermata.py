"""Fermata: hosted workflows, decisions through `vote`, Celery workers over the broker."""

import time
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import psycopg
from celery.signals import before_task_publish
from django.contrib.auth.models import User
from django.db import connection

from approvals.models import Approval
from approvals.services.voting import vote
from benchmarks.payload import PAYMENTS, database_bytes, payments, scalar
from benchmarks.peers import WARM_UP, WARM_UP_RUNS
from benchmarks.process import resident_bytes, threads
from benchmarks.workers import forget_doorbells, listen, stop_listening, workers
from checkpoints import codec
from checkpoints.store import load
from runs.bodies import opened, result_place
from runs.dispatch import ring_now
from runs.engine.executor import execute
from runs.models import Agent, Membership, Run, RunHead, Team
from runs.services.starting import start_run

WITHIN = 120.0  # seconds for everything that workers do


def steps(url: str, count: int) -> dict[str, float]:
    """Milliseconds per turn: a recorded step of 1 kB that is appended to the history, and the checkpoint."""
    _drive("benchmark-steps", WARM_UP)
    return {"ms": _drive("benchmark-steps", count) / count * 1000}


def growth(url: str, turns: int, workflow: str) -> dict[str, float]:
    _drive(workflow, 1)
    before = database_bytes(url)
    _drive(workflow, turns)
    return {"bytes": (database_bytes(url) - before) / turns}


def parked(url: str, runs: int) -> dict[str, float]:
    first = _park(5)[0]
    before, memory, held = database_bytes(url), resident_bytes(), threads()
    _park(runs)
    with connection.cursor() as cursor:
        snapshot, _ = load(cursor, run_id=first)
    return {
        "bytes": (database_bytes(url) - before) / runs,
        "threads": threads() - held,
        "memory": resident_bytes() - memory,
        "compressed": len(codec.encode(snapshot.state)),
    }


def resume(url: str, runs: int) -> dict[str, float]:
    """Runs per second of one worker with two processes, from the moment that it may take them to the last one's end."""
    with workers(concurrency=2):
        for count in (WARM_UP_RUNS, runs):
            ids = _park(count)
            forget_doorbells()  # of the starts
            _approve(ids)
            began = scalar(url, "SELECT clock_timestamp()")
            listen()
            _until_completed(ids)
            stop_listening()
    ended = max(Run.objects.filter(id__in=ids).values_list("finished_at", flat=True))
    return {"rate": runs / (ended - began).total_seconds()}


def wake(url: str, samples: int) -> dict[str, list[float]]:
    """Milliseconds from the decision's commit, after which the doorbell rings, to the code behind the gate."""
    committed: list[float] = []
    before_task_publish.connect(lambda **_: committed.append(time.time()), weak=False)
    times = []
    with workers(concurrency=2):
        listen()
        for run_id in _park(samples + 4):
            committed.clear()
            _approve([run_id])
            _until_completed([run_id])
            body = Run.objects.values_list("result", flat=True).get(id=run_id)
            told = opened(body or b"", result_place(run_id), what="result")
            times.append((told - committed[0]) * 1000)
    return {"ms": times[4:]}  # each process of the worker has its first run, with connections to make


def twice(url: str, runs: int) -> dict[str, int]:
    """Two workers get four messages for each of the approved runs."""
    with psycopg.connect(url, autocommit=True) as setup:
        setup.execute(PAYMENTS)
    with workers(processes=2, concurrency=1):
        ids = _park(runs, pay=True)
        _approve(ids)
        for run_id in ids:
            for _ in range(3):
                ring_now(run_id)
        listen()
        _until_completed(ids)
    made = payments(url)
    return {"runs": runs, "payments": sum(made.get(str(run_id), 0) for run_id in ids)}


def _drive(workflow: str, turns: int) -> float:
    """Seconds that a run of so many turns takes in this process."""
    run = start_run(agent=_agent(), workflow=workflow, input=turns)
    began = time.perf_counter()
    while execute(run.id, worker="benchmark"):
        pass
    took = time.perf_counter() - began
    _require_completed([run.id])
    return took


def _park(runs: int, *, pay: bool = False) -> list[UUID]:
    """Runs that wait at their gate."""
    ids = [start_run(agent=_agent(), workflow="benchmark-gate", input=pay).id for _ in range(runs)]
    for run_id in ids:
        execute(run_id, worker="benchmark")
    return ids


def _approve(ids: Sequence[UUID]) -> None:
    reviewer = _reviewer()
    for approval in Approval.objects.filter(run_id__in=ids):
        vote(
            approval_id=approval.id,
            voter=reviewer,
            verdict="approve",
            review=approval.review,
            hold=timedelta(0),
        )


def _until_completed(ids: Sequence[UUID]) -> None:
    ends = time.monotonic() + WITHIN
    unfinished = RunHead.objects.filter(run_id__in=ids).exclude(status__in=("completed", "failed", "blocked"))
    while unfinished.exists():
        if time.monotonic() > ends:
            raise TimeoutError(f"{unfinished.count()} runs did not end")
        time.sleep(0.05)
    _require_completed(ids)


def _require_completed(ids: Sequence[UUID]) -> None:
    others = list(Run.objects.filter(id__in=ids).exclude(head__status="completed").values_list("error", flat=True))
    if others:
        raise RuntimeError(f"runs did not complete: {others[:3]}")


def _agent() -> Agent:
    agent, _ = Agent.objects.get_or_create(team=Team.objects.get(name="Default"), name="benchmark")
    return agent


def _reviewer() -> User:
    user, created = User.objects.get_or_create(username="benchmark")
    if created:
        Membership.objects.create(user=user, team=Team.objects.get(name="Default"), roles=["reviewer"])
    return user
