"""Parking against everything that wakes: whatever comes first, no run sleeps for ever and none goes on twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Barrier, Thread

import pytest
from django.contrib.auth.models import User
from django.db import connection

from runs.engine.connection import engine_connection
from runs.engine.executor import execute
from runs.models import Agent, RunHead
from runs.services.answering import record_event
from runs.services.controlling import cancel_run
from tests.engine.conftest import Driver
from tests.engine.flows import CALLS

ROUNDS = 20


@pytest.fixture
def driver(transactional_db: None, agent: Agent, reviewer: User) -> Driver:
    CALLS.clear()
    return Driver(agent, reviewer)


def at_once(*actions: Callable[[], object]) -> list[BaseException]:
    """Do all of it at the same moment, each in a thread with connections of its own. Returns what they raised."""
    barrier = Barrier(len(actions))
    raised: list[BaseException] = []

    def act(action: Callable[[], object]) -> None:
        barrier.wait()
        try:
            action()
        except Exception as error:
            raised.append(error)
        finally:
            connection.close()
            engine_connection().close()

    threads = [Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_an_event_that_comes_while_the_run_parks_is_not_lost(driver: Driver) -> None:
    # absurd#61, inngest#1433
    for _ in range(ROUNDS):
        run = driver.start("test/branches")
        raised = at_once(
            partial(execute, run.id, worker="a"), partial(record_event, run_id=run.id, name="go", payload=1)
        )
        assert raised == []
        if RunHead.objects.get(run=run).status != "completed":
            assert driver.go_on(run).status == "completed"


def test_two_approvals_of_one_gate_at_once_wake_the_run_once(driver: Driver) -> None:
    # mediforce#749
    for _ in range(ROUNDS // 2):
        CALLS.clear()
        run = driver.start("test/gate-group")
        driver.go_on(run)
        first, second, third = driver.pending(run).values()
        driver.decide(first)
        assert at_once(partial(driver.decide, second), partial(driver.decide, third)) == []
        assert RunHead.objects.get(run=run).status == "queued"
        assert driver.go_on(run).status == "completed"
        assert CALLS["pay 1.00"] == CALLS["pay 2.00"] == CALLS["pay 3.00"] == 1


def test_an_approved_run_is_resumed_by_one_of_two_workers(driver: Driver) -> None:
    # langgraph#8796, C01
    for _ in range(ROUNDS // 2):
        CALLS.clear()
        run = driver.start("test/gate")
        driver.go_on(run)
        driver.decide(driver.pending(run)["pay"])
        raised = at_once(*[partial(execute, run.id, worker=name) for name in ("a", "b", "c", "d")])
        assert raised == []
        assert RunHead.objects.get(run=run).status == "completed"
        assert CALLS["pay 1.00"] == 1


def test_a_cancellation_against_a_decision_against_a_resume(driver: Driver) -> None:
    """Exactly one stands: either the run was cancelled and nothing paid afterwards, or it went through."""
    for _ in range(ROUNDS // 2):
        CALLS.clear()
        run = driver.start("test/gate")
        driver.go_on(run)
        approval = driver.pending(run)["pay"]
        at_once(
            partial(driver.decide, approval),
            partial(execute, run.id, worker="a"),
            partial(cancel_run, run_id=run.id, actor="system"),
        )
        head = driver.go_on(run)
        assert head.status in ("cancelled", "completed")
        assert CALLS["pay 1.00"] <= 1
        assert driver.pending(run) == {}
        approval.refresh_from_db()
        assert approval.status in ("approved", "cancelled")


def test_a_run_that_is_cancelled_while_it_works_writes_nothing_more(driver: Driver) -> None:
    for _ in range(ROUNDS // 2):
        run = driver.start("test/steps")
        at_once(partial(execute, run.id, worker="a"), partial(cancel_run, run_id=run.id, actor="system"))
        run.refresh_from_db()
        head = RunHead.objects.get(run=run)
        assert (head.status == "completed") == (run.result is not None)
        assert head.status in ("cancelled", "completed")
