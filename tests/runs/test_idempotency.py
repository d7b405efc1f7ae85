"""The same key and the same request: the first answer, and the work done once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection

from runs.idempotency import Answer, IdempotencyConflict, forget_old, idempotent, request_hash
from runs.models import Agent, IdempotentRequest, Team

pytestmark = pytest.mark.django_db(transaction=True)


def asked(body: object = None) -> bytes:
    return request_hash(method="POST", path="/x", body=body)


def test_it_does_the_work_once(agent: Agent) -> None:
    done: list[int] = []

    def work() -> Answer:
        done.append(1)
        return Answer(status=201, body=f'{{"n":{len(done)}}}')

    first = idempotent(agent=agent, key="k", request_hash=asked(), work=work)
    again = idempotent(agent=agent, key="k", request_hash=asked(), work=work)
    assert (first.status, first.body, first.replayed) == (201, '{"n":1}', False)
    assert (again.status, again.body, again.replayed) == (201, '{"n":1}', True)
    assert len(done) == 1


def test_another_request_with_the_same_key_is_refused(agent: Agent) -> None:
    idempotent(agent=agent, key="k", request_hash=asked({"amount": 100}), work=lambda: Answer(201, "{}"))
    with pytest.raises(IdempotencyConflict):
        idempotent(agent=agent, key="k", request_hash=asked({"amount": 200}), work=lambda: Answer(201, "{}"))


def test_keys_belong_to_an_agent(agent: Agent, team: Team) -> None:
    other = Agent.objects.create(team=team, name="other")
    idempotent(agent=agent, key="k", request_hash=asked(1), work=lambda: Answer(201, "1"))
    assert idempotent(agent=other, key="k", request_hash=asked(2), work=lambda: Answer(201, "2")).body == "2"


def test_what_failed_can_be_sent_again(agent: Agent, team: Team) -> None:
    def fail() -> Answer:
        Agent.objects.create(team=team, name="half done")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        idempotent(agent=agent, key="k", request_hash=asked(), work=fail)
    assert not Agent.objects.filter(name="half done").exists()
    assert idempotent(agent=agent, key="k", request_hash=asked(), work=lambda: Answer(201, "{}")).status == 201


def test_in_parallel_one_works_and_the_others_wait_for_its_answer(agent: Agent) -> None:
    # microsoft/powercat-business-approvals-kit#292
    together = threading.Barrier(8)
    worked = threading.Lock()
    done: list[int] = []

    def work() -> Answer:
        with worked:
            done.append(1)
        return Answer(status=201, body="{}")

    def send(_: int) -> Answer:
        together.wait()
        try:
            return idempotent(agent=agent, key="k", request_hash=asked(), work=work)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(8)))
    assert len(done) == 1
    assert {(answer.status, answer.body) for answer in answers} == {(201, "{}")}
    assert sum(answer.replayed for answer in answers) == 7
    assert IdempotentRequest.objects.count() == 1


def test_answers_are_kept_for_thirty_days(agent: Agent, move_clock: Callable[[timedelta], None]) -> None:
    idempotent(agent=agent, key="k", request_hash=asked(), work=lambda: Answer(201, "{}"))
    move_clock(timedelta(days=29))
    assert forget_old() == 0
    move_clock(timedelta(days=2))
    assert forget_old() == 1


def test_order_and_white_space_do_not_make_another_request() -> None:
    assert asked({"a": 1, "b": [True]}) == asked({"b": [True], "a": 1})
    assert asked({"a": 1}) != asked({"a": 1.0})
