"""A checkpoint under way: the next phase begins, and nothing that depends on it happens before it has arrived."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import connection

from checkpoints.models import Checkpoint
from checkpoints.store import Prepared
from runs.engine import sending
from runs.engine.connection import EngineConnection, connection_parameters, engine_connection
from runs.engine.ownership import Ownership
from runs.engine.riders import ReadOutcome
from runs.engine.signals import LostRun
from runs.models import Agent, RunHead, Step
from tests.races.test_fences import checkpoint, claimed, intent
from tests.support.checkpoints import in_its_place
from tests.support.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def head_locked(own: Ownership) -> Iterator[psycopg.Connection[Any]]:
    """Whoever writes the run's head waits."""
    with psycopg.connect(**connection_parameters()) as other, other.transaction():
        other.execute("SELECT FROM runs_head WHERE run_id = %s FOR UPDATE", (own.run_id,))
        yield other


def sent(own: Ownership) -> None:
    own.riders.reads.append(ReadOutcome("read", 1, "test/look", bytes(32), "done", b"\xc0"))
    own.save_checkpoint(checkpoint(own), turn=1, phase="act", schema=1, left_phase="start")


def two(own: Ownership) -> tuple[Prepared, Prepared]:
    """Two checkpoints, one behind the other."""
    first = checkpoint(own)
    return first, behind(first)


def behind(prepared: Prepared) -> Prepared:
    """The next one, which changes nothing."""
    seq = prepared.head.seq + 1
    return replace(prepared, label=replace(prepared.label, seq=seq), head=replace(prepared.head, seq=seq), parts=())


def send_both(own: Ownership, first: Prepared, second: Prepared) -> None:
    """Returns when the first one has arrived."""
    own.save_checkpoint(first, turn=1, phase="act", schema=1, left_phase="start")
    own.riders.reads.append(ReadOutcome("read", 1, "test/look", bytes(32), "done", b"\xc0"))
    own.save_checkpoint(second, turn=2, phase="act", schema=1, left_phase="act")


@contextmanager
def both_under_way(own: Ownership) -> Iterator[tuple[psycopg.Connection[Any], Future[None]]]:
    """Inside, the first stands at the lock and the second has been sent; the future is the end of `send_both`."""
    prepared = two(own)
    with ThreadPoolExecutor(1) as threads, head_locked(own) as other:
        future = threads.submit(send_both, own, *prepared)
        until(lambda: at_the_lock() and own.connection.under_way == 2, what="two are under way")
        yield other, future


def at_the_lock() -> list[int]:
    """The server processes that stand at a lock with a fenced statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'WITH fence%'
               AND state = 'active' AND wait_event_type = 'Lock'"""
        )
        return [pid for (pid,) in cursor.fetchall()]


def end_at_the_lock() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", at_the_lock())
    until(lambda: not at_the_lock(), what="it is gone")


def saved(own: Ownership) -> tuple[int, int]:
    """How many checkpoints and reads are durable, seen from elsewhere."""
    checkpoints = Checkpoint.objects.filter(run_id=own.run_id, seq=1).count()
    return checkpoints, Step.objects.filter(run_id=own.run_id, key="read").count()


def both_saved(own: Ownership) -> bool:
    seqs = Checkpoint.objects.filter(run_id=own.run_id).order_by("seq").values_list("seq", flat=True)
    reads = Step.objects.filter(run_id=own.run_id, key="read", turn=1).count()
    return list(seqs) == [0, 1, 2] and reads == 1


def test_nothing_waits_for_a_checkpoint_but_what_depends_on_it(agent: Agent) -> None:
    own = claimed(agent)
    with head_locked(own):
        sent(own)  # returns although nobody can write the head
        until(at_the_lock, what="the checkpoint stands at the lock")
        assert saved(own) == (0, 0)
    own.record_intent(intent("next"))
    assert saved(own) == (1, 1)
    assert own.head_seq == 1


def test_what_else_the_connection_does_waits_its_turn(agent: Agent) -> None:
    own = claimed(agent)
    sent(own)
    row = own.connection.execute("SELECT seq FROM checkpoints_checkpoint WHERE run_id = %s", (own.run_id,)).fetchall()
    assert (1,) in row
    own.anchor()
    assert own.head_seq == 1


def test_a_checkpoint_that_never_arrived_is_sent_again(agent: Agent) -> None:
    own = claimed(agent)
    with head_locked(own):
        sent(own)
        until(at_the_lock, what="the checkpoint stands at the lock")
        end_at_the_lock()
    own.anchor()
    assert (own.epoch, own.head_seq) == (2, 1)  # the epoch was raised: what may still have been under way is stale
    assert saved(own) == (1, 1)


def test_a_checkpoint_whose_answer_was_lost_is_not_written_twice(agent: Agent) -> None:
    own = claimed(agent)
    sent(own)
    own.connection.lose_next_answer()
    own.anchor()
    assert (own.epoch, own.head_seq) == (2, 1)
    assert saved(own) == (1, 1)


def test_a_run_lost_while_a_checkpoint_is_under_way_is_noticed_before_anything_is_done(agent: Agent) -> None:
    own = claimed(agent)
    with head_locked(own) as other:
        sent(own)
        until(at_the_lock, what="the checkpoint stands at the lock")
        other.execute("UPDATE runs_head SET epoch = epoch + 1 WHERE run_id = %s", (own.run_id,))
    with pytest.raises(LostRun):
        own.record_intent(intent("next"))
    assert saved(own) == (0, 0)
    assert not Step.objects.filter(run_id=own.run_id, key="next").exists()
    assert RunHead.objects.get(run_id=own.run_id).head_seq == 0


def test_the_next_checkpoint_does_not_wait_for_the_answer_of_the_one_before(agent: Agent) -> None:
    own = claimed(agent)
    with both_under_way(own) as (_, future):
        assert not future.done()  # the phase after the second does not begin before the first has arrived
    future.result()
    assert own.head_seq == 1
    own.anchor()
    assert (own.epoch, own.head_seq) == (1, 2)
    assert both_saved(own)


def test_two_that_never_arrived_are_sent_again_in_their_order(agent: Agent) -> None:
    own = claimed(agent)
    with both_under_way(own) as (_, future):
        end_at_the_lock()
    future.result()
    own.anchor()
    assert (own.epoch, own.head_seq) == (2, 2)
    assert both_saved(own)


@pytest.mark.parametrize("lost", [1, 2])
def test_two_of_which_an_answer_was_lost_are_not_written_twice(agent: Agent, lost: int) -> None:
    own = claimed(agent)
    prepared = two(own)
    if lost == 1:
        own.connection.lose_next_answer()
    send_both(own, *prepared)
    if lost == 2:
        own.connection.lose_next_answer()
    own.anchor()
    assert (own.epoch, own.head_seq) == (2, 2)
    assert both_saved(own)


def test_a_run_lost_while_two_are_under_way_gets_neither(agent: Agent) -> None:
    own = claimed(agent)
    with both_under_way(own) as (other, future):
        other.execute("UPDATE runs_head SET epoch = epoch + 1 WHERE run_id = %s", (own.run_id,))
    with pytest.raises(LostRun):
        future.result()
    assert not Checkpoint.objects.filter(run_id=own.run_id, seq__gt=0).exists()


def test_a_checkpoint_behind_one_that_fails_is_not_written_before_it(agent: Agent) -> None:
    own = claimed(agent)
    prepared = two(own)
    in_its_place(own.run_id)
    with pytest.raises(psycopg.errors.UniqueViolation):
        send_both(own, *prepared)
    with pytest.raises(psycopg.errors.UniqueViolation):
        own.anchor()
    assert RunHead.objects.get(run_id=own.run_id).head_seq == 0
    Checkpoint.objects.filter(run_id=own.run_id, seq=1).delete()
    own.anchor()
    assert (own.epoch, own.head_seq) == (1, 2)
    assert both_saved(own)


def test_the_next_checkpoint_after_one_that_failed_takes_along_all_that_followed_it(agent: Agent) -> None:
    own = claimed(agent)
    prepared = two(own)
    in_its_place(own.run_id)
    with pytest.raises(psycopg.errors.UniqueViolation):
        send_both(own, *prepared)
    Checkpoint.objects.filter(run_id=own.run_id, seq=1).delete()
    own.save_checkpoint(behind(prepared[1]), turn=3, phase="act", schema=1, left_phase=None)
    own.anchor()
    assert (own.epoch, own.head_seq) == (1, 3)


def test_an_error_is_kept_for_whoever_asks_for_the_row() -> None:
    lines = EngineConnection()
    failed = lines.send(b"SELECT 1 / 0")
    assert lines.execute("SELECT 1").fetchone() == (1,)
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            failed.row()
    lines.close()


def test_what_was_prepared_is_prepared_again_after_a_transaction_that_was_rolled_back() -> None:
    lines = EngineConnection()
    for number in range(10):
        assert lines.execute("SELECT %s", (number,)).fetchone() == (number,)
        assert lines.send(b"SELECT 1 + %s", (number,)).row() == (number + 1,)
    with pytest.raises(LostRun), lines.transaction():
        raise LostRun
    assert lines.send(b"SELECT 1 + %s", (1,)).row() == (2,)
    kept = lines.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'fermata%'").fetchone()
    assert kept == (1,)
    lines.close()


def test_a_checkpoint_that_was_prepared_and_is_no_more_is_sent_again(agent: Agent) -> None:
    own = claimed(agent)
    last = two(own)[1]
    own.head_seq = 1
    RunHead.objects.filter(run_id=own.run_id).update(head_seq=1)
    for _ in range(2):
        own.save_checkpoint(last, turn=2, phase="act", schema=1, left_phase=None)
        own.connection.execute("DEALLOCATE ALL")
        last = behind(last)
    own.anchor()
    assert (own.epoch, own.head_seq) == (2, 3)


def test_after_a_lost_connection_each_is_sent_again_once(agent: Agent, monkeypatch: Any) -> None:
    own = claimed(agent)
    prepared, sends = two(own), []
    send = EngineConnection.send
    monkeypatch.setattr(EngineConnection, "send", lambda *args: (sends.append(args[2][0]), send(*args))[1])
    own.connection.lose_next_answer()
    send_both(own, *prepared)
    own.save_checkpoint(behind(prepared[1]), turn=3, phase="act", schema=1, left_phase=None)
    own.anchor()
    assert own.head_seq == 3
    assert sends in ([1, 2, 3], [1, 2, 2, 3])  # the second had committed by then, or had not


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_has_a_connection_of_its_own() -> None:
    lines = engine_connection()
    server = "SELECT pg_backend_pid()"
    ours = lines.execute(server).fetchone()
    sent = lines.send(b"SELECT 1")
    if (child := os.fork()) == 0:
        try:
            os._exit(engine_connection().execute(server).fetchone() == ours)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert sent.row() == (1,)
    assert lines.execute(server).fetchone() == ours


def test_more_statements_than_are_kept_prepared_and_large_ones_get_their_answers(monkeypatch: Any) -> None:
    monkeypatch.setattr(sending, "MOST_PREPARED", 2)
    lines = EngineConnection()
    for size in (1, 8_000_000):
        sent = [lines.send(b"SELECT length(%%s), %d" % number, ("x" * size,)) for number in (1, 2, 3, 1)]
        assert [one.row() for one in reversed(sent)] == [(size, number) for number in (1, 3, 2, 1)]
    kept = lines.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'fermata%'").fetchone()
    assert kept == (2,)
    lines.close()


def test_nothing_is_prepared_where_that_is_switched_off(settings: Any) -> None:
    settings.FERMATA_PREPARED_STATEMENTS = False
    lines = EngineConnection()
    assert [lines.send(b"SELECT %s", (number,)).row() for number in (1, 2)] == [(1,), (2,)]
    kept = lines.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'fermata%'").fetchone()
    assert kept == (0,)
    lines.close()
