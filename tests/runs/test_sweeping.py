"""The sweeper: what it finds, what it leaves alone, and what it costs to run it twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from threading import Barrier, Thread
from uuid import UUID

import pytest
from django.db import connection

from runs.clock import database_now
from runs.engine.executor import OLDEST
from runs.engine.workflows import supported_columns
from runs.models import Agent, Build, Run, RunHead, ServiceBeat
from runs.services import sweeping
from runs.services.controlling import cancel_run
from runs.services.starting import start_run
from runs.services.sweeping import stranded, sweep
from tests.engine import flows  # noqa: F401 - registers the workflows


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The doorbells that were rung, instead of a broker."""
    heard: list[UUID] = []
    monkeypatch.setattr(sweeping, "ring_now", lambda run_id: heard.append(run_id) or True)
    return heard


@pytest.fixture
def run(transactional_db: None, agent: Agent) -> Run:
    return start_run(agent=agent, workflow="test/steps", input=None)


def put(run: Run, **columns: object) -> None:
    RunHead.objects.filter(run=run).update(**columns)


def test_a_ready_run_without_a_message_is_rung_for(
    run: Run, rung: list[UUID], move_clock: Callable[[timedelta], None]
) -> None:
    move_clock(timedelta(seconds=10))
    sweep()
    assert rung == [run.id]


def test_it_rings_again_ever_more_rarely_and_never_gives_up(
    run: Run, rung: list[UUID], move_clock: Callable[[timedelta], None]
) -> None:
    for _ in range(600):
        move_clock(timedelta(seconds=1))
        sweeping._ring_unheard()
    assert 15 <= len(rung) <= 30


def test_a_doorbell_that_the_broker_did_not_take_does_not_count(
    run: Run, monkeypatch: pytest.MonkeyPatch, move_clock: Callable[[timedelta], None]
) -> None:
    monkeypatch.setattr(sweeping, "ring_now", lambda run_id: False)
    for _ in range(20):
        move_clock(timedelta(seconds=10))
        sweep()
    heard: list[UUID] = []
    monkeypatch.setattr(sweeping, "ring_now", lambda run_id: heard.append(run_id) or True)
    sweep()
    assert heard == [run.id]


def test_parked_runs_are_left_alone(
    agent: Agent, transactional_db: None, rung: list[UUID], move_clock: Callable[[timedelta], None]
) -> None:
    for _ in range(500):
        put(start_run(agent=agent, workflow="test/steps", input=None), status="suspended", reason="approval")
    move_clock(timedelta(seconds=50))
    before = list(RunHead.objects.order_by("run").values_list())
    assert sweep() == sweeping.Swept(rung=0, taken_back=0, woken=0, unblocked=0, blocked=0)
    assert list(RunHead.objects.order_by("run").values_list()) == before
    assert rung == []


def test_an_abandoned_run_goes_back_to_the_queue_and_counts_a_crash(
    run: Run, rung: list[UUID], move_clock: Callable[[timedelta], None]
) -> None:
    put(run, status="running", epoch=1, lease="2000-01-01T00:00:00Z")
    assert sweep().taken_back == 1
    head = RunHead.objects.get(run=run)
    assert (head.status, head.crashes, head.epoch) == ("queued", 1, 1)


def test_a_worker_that_was_shutting_down_costs_no_budget(run: Run, rung: list[UUID]) -> None:
    # vercel/workflow#3992: three deploys in the middle of a step
    for epoch in (1, 2, 3):
        put(run, status="running", epoch=epoch, lease="2000-01-01T00:00:00Z", draining=True)
        sweep()
    head = RunHead.objects.get(run=run)
    assert (head.status, head.crashes) == ("queued", 0)


def test_a_poison_run_ends_failed_with_its_story(run: Run, rung: list[UUID]) -> None:
    # aws-durable-execution-docs#281: a step that always kills its worker
    for epoch in range(1, 6):
        put(run, status="running", epoch=epoch, lease="2000-01-01T00:00:00Z")
        sweep()
    run.refresh_from_db()
    assert run.head.status == "failed"
    assert "its worker died 5 times in phase 'start'" in run.error
    assert run.finished_at is not None


def test_two_sweepers_at_once_move_a_run_once(run: Run, rung: list[UUID]) -> None:
    put(run, status="running", epoch=1, lease="2000-01-01T00:00:00Z")
    barrier = Barrier(4)
    moved: list[int] = []

    def one() -> None:
        barrier.wait()
        moved.append(sweep().taken_back)
        connection.close()

    threads = [Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(moved) == 1
    assert RunHead.objects.get(run=run).crashes == 1


def test_a_sweeper_that_dies_half_way_strands_nothing(
    agent: Agent, transactional_db: None, monkeypatch: pytest.MonkeyPatch, move_clock: Callable[[timedelta], None]
) -> None:
    """procrastinate#1408: it dies after the second of five doorbells, all of which it had noted as rung; and again
    after it took a run back."""
    queued = [start_run(agent=agent, workflow="test/steps", input=None) for _ in range(4)]
    abandoned = start_run(agent=agent, workflow="test/steps", input=None)
    put(abandoned, status="running", epoch=1, lease="2000-01-01T00:00:00Z")
    heard: list[UUID] = []

    def die_at_the_third(run_id: UUID) -> bool:
        heard.append(run_id)
        if len(heard) == 3:
            raise SystemExit
        return True

    monkeypatch.setattr(sweeping, "ring_now", die_at_the_third)
    move_clock(timedelta(seconds=10))
    for _ in range(2):
        with pytest.raises(SystemExit):
            sweep()
        heard.clear()
        move_clock(timedelta(seconds=10))
    monkeypatch.setattr(sweeping, "ring_now", lambda run_id: heard.append(run_id) or True)
    for _ in range(3):
        sweep()
        move_clock(timedelta(seconds=10))
    assert {run.id for run in queued} <= set(heard)
    assert abandoned.id in heard
    head = RunHead.objects.get(run=abandoned)
    assert (head.status, head.crashes) == ("queued", 1)


def test_a_run_is_found_although_nothing_is_known_of_its_worker(
    run: Run, rung: list[UUID], transactional_db: None
) -> None:
    """procrastinate#1518: jobs of a worker whose record was gone stayed "doing" for ever.

    Worker, beats and builds are for people to read: only the lease says that a run has an owner.
    """
    put(run, status="running", epoch=1, lease="2000-01-01T00:00:00Z", worker="")
    Build.objects.all().delete()
    ServiceBeat.objects.all().delete()
    assert sweep().taken_back == 1
    assert RunHead.objects.get(run=run).status == "queued"
    assert rung == [run.id]


def test_a_due_timer_wakes_its_run_once(run: Run, rung: list[UUID], move_clock: Callable[[timedelta], None]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO runs_gate (run_id, turn, key, ordinal, phase, kind, question_hash, generation, superseded,"
            " wake_at, opened_at)"
            " VALUES (%s, 0, 'sleep', 0, 'start', 'timer', '', 0, 0, now() + interval '1 h', now())",
            [run.id],
        )
        cursor.execute(
            "UPDATE runs_head SET status = 'suspended', reason = 'timer', wake_at = now() + interval '1 h'"
            " WHERE run_id = %s",
            [run.id],
        )
    assert sweep().woken == 0
    move_clock(timedelta(hours=2))
    assert sweep().woken == 1
    assert sweep().woken == 0


def test_a_run_that_is_suspended_with_nothing_open_raises_an_alarm(
    run: Run, caplog: pytest.LogCaptureFixture, move_clock: Callable[[timedelta], None]
) -> None:
    put(run, status="suspended", reason="approval")
    move_clock(timedelta(minutes=5))
    assert stranded() == [run.id]
    assert "waits for nothing" in caplog.text
    assert RunHead.objects.get(run=run).status == "queued"


def test_a_cancelled_run_is_nobodys_business(run: Run, rung: list[UUID]) -> None:
    put(run, status="running", epoch=1, lease="2000-01-01T00:00:00Z")
    cancel_run(run_id=run.id, actor="system")
    assert sweep().taken_back == 0


def test_every_run_is_in_exactly_one_share() -> None:
    for shares in (1, 3, 16, 41):
        parts = [sweeping._share(number, shares) for number in range(shares)]
        assert parts[0][0].int == 0
        assert parts[-1][1].int == (1 << 128) - 1
        assert all(last.int + 1 == first.int for (_, last), (first, _) in pairwise(parts))
        assert sweeping._share(shares + 1, shares) == parts[1 % shares]


def test_all_shares_together_find_a_stranded_run(
    run: Run, monkeypatch: pytest.MonkeyPatch, move_clock: Callable[[timedelta], None]
) -> None:
    put(run, status="suspended", reason="event")
    monkeypatch.setattr(sweeping, "RUNS", "SELECT 150000")
    found = []
    move_clock(timedelta(minutes=2))
    for minute in range(3):
        monkeypatch.setattr(sweeping.time, "time", lambda minute=minute: minute * 60.0)
        monkeypatch.setattr(sweeping, "wake_if_answered", lambda cursor, locked: None)
        found += stranded()
    assert found == [run.id]


def test_the_oldest_of_all_queues_is_claimed(run: Run, agent: Agent) -> None:
    other = start_run(agent=agent, workflow="test/branches", input=None)

    def oldest() -> UUID | None:
        names, schemas = supported_columns()
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"SELECT {OLDEST}", {"workflows": names, "schemas": schemas})
            found: UUID | None = cursor.fetchone()[0]
            cursor.execute("ROLLBACK")
        return found

    assert oldest() == run.id
    put(run, status="suspended", reason="event")
    assert oldest() == other.id
    put(run, status="queued", reason="")
    assert oldest() == other.id  # the first one waits at the end again
    put(other, wake_at=database_now() + timedelta(hours=1))
    assert oldest() == run.id
