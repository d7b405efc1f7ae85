"""Many runs at once: none waits for another, and connections that died are replaced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from django.db import connection, transaction

from runs.authoring import RunContext, tool, workflow
from runs.engine.connection import connect, engine_connection
from runs.engine.executor import execute
from runs.models import Agent, Run, RunHead
from runs.services.locking import lock_run
from runs.services.starting import start_run
from tests.engine.deploys import deployment
from tests.races.test_parking import driver

__all__ = ["deployment", "driver"]

AT_ONCE = 8
END_CONNECTIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def execute_on_a_thread_of_its_own(run: Run) -> None:
    try:
        execute(run.id, worker="test")
    finally:
        engine_connection().close()
        connection.close()


def test_runs_are_at_work_at_the_same_time(driver: object, deployment: object, agent: Agent) -> None:
    """langgraph#7259: one lock around all saves took 1,295 requests a second down to 199.

    Each call waits until all runs are in one, again and again, with checkpoints in between: a lock that one of them
    held across a call, or a connection that they had to share, would leave the others outside. Meanwhile somebody sits
    on the lock of a run that is none of theirs.
    """
    meeting = Barrier(AT_ONCE, timeout=30)

    @tool(effect="once", name="test/meet")
    def meet(turn: int) -> int:
        meeting.wait()
        return turn

    @workflow("test/meetings")
    class Meetings:
        def start(self, run: RunContext) -> object:
            turns = run.state.setdefault("turns", [])
            turns.append(run.step("meet", meet, len(turns)))
            return self.start if len(turns) < 5 else run.complete(turns)

    runs = [start_run(agent=agent, workflow="test/meetings", input=None) for _ in range(AT_ONCE + 1)]
    locked = runs.pop()
    with ThreadPoolExecutor(AT_ONCE) as pool, transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, locked.id)
        list(pool.map(execute_on_a_thread_of_its_own, runs))
    assert set(RunHead.objects.filter(run__in=runs).values_list("status", flat=True)) == {"completed"}
    assert RunHead.objects.get(run=locked).epoch == 0


def test_connections_that_died_are_replaced(driver: object, deployment: object, agent: Agent) -> None:
    """langgraph#5675: a saver went on handing out connections that the server had closed.

    All of them are ended while a call is under way: the worker's own, which records the outcome, and its heartbeat's.
    """
    begun, ended = Event(), Event()
    made: list[str] = []

    @tool(effect="once", name="test/wait")
    def wait(what: str) -> str:
        made.append(what)
        begun.set()
        assert ended.wait(30)
        return what

    @workflow("test/waiting")
    class Waiting:
        def start(self, run: RunContext) -> object:
            return run.complete(run.step("wait", wait, "once"))

    for _ in range(3):
        begun.clear()
        ended.clear()
        run = start_run(agent=agent, workflow="test/waiting", input=None)
        with ThreadPoolExecutor(1) as pool, connect() as server:
            working = pool.submit(execute_on_a_thread_of_its_own, run)
            assert begun.wait(30)
            server.execute(END_CONNECTIONS)
            ended.set()
            working.result(60)
        connection.close()  # this thread's own was ended too
        assert RunHead.objects.get(run=run).status == "completed"
    assert made == ["once"] * 3
