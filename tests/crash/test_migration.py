"""The example that must hold literally: killed after record 3,200, a migration goes on from 3,201."""

from __future__ import annotations

import os
import signal

import pytest

from checkpoints.store import load
from examples.models import MigratedRecord
from runs.engine.connection import engine_connection
from runs.models import Agent, Run, RunHead
from runs.services.starting import start_run
from tests.support.waiting import until
from tests.support.workers import WorkerFactory

RECORDS, BATCH = 5_000, 100


def snapshot_of(run: Run):
    with engine_connection().transaction() as cursor:
        return load(cursor, run_id=run.id)[0]


def assert_completed_and_each_touched_once(run: Run) -> None:
    until(lambda: RunHead.objects.get(run=run).status == "completed", what="the run completes", seconds=60)
    assert MigratedRecord.objects.filter(run_id=run.id).count() == RECORDS
    assert not MigratedRecord.objects.filter(run_id=run.id).exclude(touched=1).exists()
    copied = [item["copied"] for item in snapshot_of(run).history]
    assert [(c["from"], c["to"]) for c in copied] == [(n + 1, n + BATCH) for n in range(0, RECORDS, BATCH)]


def test_killed_after_record_3200_it_continues_from_3201(workers: WorkerFactory, agent: Agent) -> None:
    # The 33rd checkpoint is that of the 32nd batch: the start's own comes first.
    doomed = workers.start(FERMATA_FAILPOINTS="1", FERMATA_FAILPOINT="checkpoint.after:kill:33")
    run = start_run(agent=agent, workflow="migration-agent", input={"records": RECORDS, "batch": BATCH})
    assert doomed.wait() == -signal.SIGKILL
    epoch = RunHead.objects.get(run=run).epoch
    assert snapshot_of(run).state["done"] == 3_200
    assert MigratedRecord.objects.filter(run_id=run.id).count() == 3_200

    workers.start_sweeper()
    workers.start(FERMATA_LEASE_SECONDS="15")  # within a shorter one a busy machine may make it claim the run anew
    assert_completed_and_each_touched_once(run)
    resumed = snapshot_of(run).history[32]
    assert resumed == {"copied": {"from": 3_201, "to": 3_300}}
    assert RunHead.objects.get(run=run).epoch == epoch + 1


@pytest.mark.parametrize("point", ["intent.after", "call.after", "outcome.after", "checkpoint.before"])
def test_killed_anywhere_in_a_batch_it_touches_no_record_twice(
    workers: WorkerFactory, agent: Agent, point: str
) -> None:
    doomed = workers.start(FERMATA_FAILPOINTS="1", FERMATA_FAILPOINT=f"{point}:kill:20")
    run = start_run(agent=agent, workflow="migration-agent", input={"records": RECORDS, "batch": BATCH})
    assert doomed.wait() == -signal.SIGKILL
    workers.start_sweeper()
    workers.start()
    assert_completed_and_each_touched_once(run)


def test_a_killed_pool_child_loses_nothing(workers: WorkerFactory, agent: Agent) -> None:
    """C12, celery#1628, celery#3541: the parent lives on and the message is gone; the run must not be."""
    worker = workers.start(pool="prefork", concurrency=1)
    workers.start_sweeper()
    run = start_run(agent=agent, workflow="migration-agent", input={"records": RECORDS, "batch": BATCH})
    head = until(
        lambda: RunHead.objects.filter(run=run, status="running", turn__gt=5).first(), what="the run is under way"
    )
    child = int(head.worker.rpartition(":")[2])
    assert child != worker.pid
    os.kill(child, signal.SIGKILL)
    assert_completed_and_each_touched_once(run)
    assert worker.running
