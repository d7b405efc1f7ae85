"""A checkpoint under way: the next phase begins, and nothing that depends on it happens before it has arrived."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.db import connection

from checkpoints.models import Checkpoint
from runs.engine.connection import EngineConnection, connection_parameters
from runs.engine.ownership import Ownership
from runs.engine.riders import ReadOutcome
from runs.engine.signals import LostRun
from runs.models import Agent, RunHead, Step
from tests.races.test_fences import checkpoint, claimed, intent
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def at_once(transactional_db: None, settings: Any) -> None:
    """No statement is waited for because the connection prepares it."""
    settings.FERMATA_PREPARED_STATEMENTS = False


@contextmanager
def head_locked(own: Ownership) -> Iterator[psycopg.Connection[Any]]:
    """Whoever writes the run's head waits."""
    with psycopg.connect(**connection_parameters()) as other, other.transaction():
        other.execute("SELECT FROM runs_head WHERE run_id = %s FOR UPDATE", (own.run_id,))
        yield other


def sent(own: Ownership) -> None:
    own.riders.reads.append(ReadOutcome("read", 1, "test/look", bytes(32), "done", b"\xc0"))
    own.save_checkpoint(checkpoint(own), turn=1, phase="act", schema=1, left_phase="start")


def at_the_lock() -> list[int]:
    """The server processes that stand at a lock with a fenced statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'WITH fence%'
               AND state = 'active' AND wait_event_type = 'Lock'"""
        )
        return [pid for (pid,) in cursor.fetchall()]


def saved(own: Ownership) -> tuple[int, int]:
    """How many checkpoints and reads are durable, seen from elsewhere."""
    checkpoints = Checkpoint.objects.filter(run_id=own.run_id, seq=1).count()
    return checkpoints, Step.objects.filter(run_id=own.run_id, key="read").count()


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
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", at_the_lock())
        until(lambda: not at_the_lock(), what="it is gone")
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


def test_an_error_is_kept_for_whoever_asks_for_the_row() -> None:
    lines = EngineConnection()
    failed = lines.send("SELECT 1 / 0")
    assert lines.execute("SELECT 1").fetchone() == (1,)
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            failed.row()
    lines.close()
