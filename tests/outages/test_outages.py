"""Outages of real servers under a whole Fermata. Every run finishes, each effect happens once, nobody restarts a
worker, and no vote takes five seconds longer than before the outage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fermata.embedded.postgres import data_folder as postgres_folder
from tests.launcher.running import valkey_says
from tests.outages.rabbitmq import RabbitMQ
from tests.outages.stack import Stack, assert_each_refunded_once
from tests.support.api import suspension

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("outages")]

OUTAGE_SECONDS = 5  # what an outage may cost a vote, on top of what checking the password costs on a busy machine


def test_postgresql_dies_in_the_middle_of_a_drain(fermata: Stack) -> None:
    # C14: celery#2996; dbos-transact-py#716
    runs = fermata.start_refunds(12)
    workers = fermata.workers()
    pending = fermata.pending(runs)
    for approval in pending[:6]:
        fermata.approve(approval)
    fermata.kill_postgres()
    for approval in pending[6:]:
        fermata.approve(approval)
    fermata.wait_for_completion(runs)
    assert_each_refunded_once(fermata)
    assert fermata.workers() == workers


def test_valkey_forgets_everything_while_messages_are_queued(fermata: Stack) -> None:
    runs = fermata.start_refunds(12)
    pending = fermata.pending(runs)
    calm = fermata.approve(pending[0])
    took = []
    for number, approval in enumerate(pending[1:]):
        took.append(fermata.approve(approval))
        if number % 4 == 2:
            assert valkey_says(fermata.instance, "FLUSHALL") == "+OK"
    fermata.wait_for_completion(runs)
    assert_each_refunded_once(fermata)
    assert max(took) < calm + OUTAGE_SECONDS


def test_decisions_are_made_while_the_broker_accepts_and_stays_silent(fermata: Stack) -> None:
    runs = fermata.start_refunds(10)
    workers = fermata.workers()
    pending = fermata.pending(runs)
    calm = fermata.approve(pending[0])
    fermata.silence_valkey()
    took = [fermata.approve(approval) for approval in pending[1:]]
    assert max(took) < calm + OUTAGE_SECONDS
    fermata.wake_valkey()
    fermata.wait_for_completion(runs)
    assert_each_refunded_once(fermata)
    assert fermata.workers() == workers


def test_reviewers_agents_and_workers_at_once_get_no_errors(fermata: Stack) -> None:
    """C15, kolibri PR#13878, jentic-one PR#529: contention gives neither errors nor doubles, and loses nothing.

    Ten reviewers, of whom two want to decide each approval, and five processes of an agent that post ten suspensions
    each, while the workers resume what was decided.
    """
    people = fermata.make_reviewers(10)
    runs = fermata.start_refunds(10)
    pending = fermata.pending(runs)
    posted: list[str] = []

    def decide(number: int) -> None:
        for approval in (pending[number], pending[number - 1]):
            fermata.approve(approval, people[number])

    def post(number: int) -> None:
        for _ in range(10):
            status, answer = fermata.call("/api/v1/suspensions", suspension(args={"order": f"{number}"}))
            assert status == 201, answer
            posted.append(answer["run"]["id"])

    with ThreadPoolExecutor(15) as threads:
        at_work = [threads.submit(decide, number) for number in range(10)]
        at_work += [threads.submit(post, number) for number in range(5)]
        for work in at_work:
            work.result()
    fermata.wait_for_completion(runs)
    assert_each_refunded_once(fermata)
    assert len({approval["run"] for approval in fermata.pending(posted)}) == len(set(posted)) == 50


@pytest.fixture
def rabbitmq() -> Iterator[RabbitMQ]:
    server = RabbitMQ()
    yield server
    server.remove()


@pytest.mark.services
def test_decisions_are_made_while_rabbitmq_is_down(
    stack: Callable[..., Stack], database: str, rabbitmq: RabbitMQ
) -> None:
    """Nothing of it is embedded: the database is this machine's."""
    fermata = stack(DATABASE_URL=database, CELERY_BROKER_URL=rabbitmq.url)
    runs = fermata.start_refunds(10)
    workers = fermata.workers()
    pending = fermata.pending(runs)
    calm = fermata.approve(pending[0])
    fermata.wait_for_completion([pending[0]["run"]])
    rabbitmq.stop()
    took = [fermata.approve(approval) for approval in pending[1:]]
    assert max(took) < calm + OUTAGE_SECONDS
    rabbitmq.start()
    fermata.wait_for_completion(runs)
    assert_each_refunded_once(fermata)
    assert fermata.workers() == workers
    assert not postgres_folder(fermata.instance).exists()
