"""Telling an agent by webhook: the outbox, the order, outages, and what a dying worker leaves."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals.models import Approval
from runs.models import Agent, Run, RunHead, Webhook, WebhookPost
from runs.services import answering
from runs.services.controlling import cancel_run
from runs.services.posting import post_next, sweep_posts
from runs.services.webhooks import set_webhook, verify_webhook
from runs.webhooks.posting import NotPosted
from tests.support.api import as_agent, as_person, pointers, suspension
from tests.support.waiting import until
from tests.support.workers import WorkerFactory
from tests.webhooks.conftest import Receiver, posts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unrung")]

Park = Callable[..., dict[str, Any]]
Decide = Callable[..., None]
MoveClock = Callable[[timedelta], None]
LONG = timedelta(hours=2)


def test_an_agent_is_told_and_asks_for_the_rest(hooked: Agent, park: Park, decide: Decide, receiver: Receiver) -> None:
    """C39 (mlflow/mlflow#24179): the post has ids and numbers only, and what it leads to is what the run is now."""
    suspended = park("call_1", "call_2")
    assert posts(suspended["run"]["id"]) == []
    decide(suspended)
    assert post_next(agent_id=hooked.pk)
    assert not post_next(agent_id=hooked.pk)
    (told,) = receiver.received()
    row = WebhookPost.objects.get()
    assert (told["id"], told["type"], row.state) == (str(row.id), "run.ready", "delivered")
    assert told["data"] == {"run": suspended["run"]["id"], "sequence": 1, "checkpoint": 0}
    caller = as_agent(hooked)
    claim = caller.post(f"/runs/{told['data']['run']}/claim").json()
    for approval in caller.get(f"/approvals?run={told['data']['run']}&status=approved").json()["results"]:
        body = {"resume_token": claim["resume_token"], "action": approval["action"]}
        spent = caller.post(f"/approvals/{approval['id']}/consume", body, Idempotency_Key="k" + approval["id"])
        assert (spent.status_code, spent.json()["replayed"]) == (200, False)
    finished = caller.post(f"/runs/{told['data']['run']}/finish", {"resume_token": claim["resume_token"], "result": 1})
    assert finished.json()["status"] == "completed"


def test_no_post_without_a_commit_and_no_commit_without_a_post(
    hooked: Agent, park: Park, reviewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspended = park()
    (asked,) = suspended["approvals"]
    vote = {"type": "approve", "review": asked["review"]}

    def no_disk(*_: object) -> None:
        raise RuntimeError("the outbox cannot be written")

    with monkeypatch.context() as broken:
        broken.setattr(answering, "announce", no_disk)
        with pytest.raises(RuntimeError):
            as_person(reviewer).post(f"/approvals/{asked['id']}/votes", vote)
    assert Approval.objects.get().status == "pending"
    with transaction.atomic(), connection.cursor() as cursor:
        answering.wake(cursor, answering.lock_run(cursor, Run.objects.get().pk))
        assert posts(suspended["run"]["id"]) == [(1, "run.ready", "pending")]
        transaction.set_rollback(True)
    assert posts(suspended["run"]["id"]) == []


def test_a_delayed_older_post_never_follows_a_newer_one(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, move_clock: MoveClock
) -> None:
    """C39 (paypal/mirakl-hyperwallet-connector#35): the receiver refuses the first, and the second comes meanwhile."""
    suspended = park()
    decide(suspended)
    receiver.answers(500)
    assert post_next(agent_id=hooked.pk)
    cancel_run(run_id=suspended["run"]["id"], actor="system")
    move_clock(LONG)
    while post_next(agent_id=hooked.pk):
        move_clock(LONG)
    assert [(told["type"], told["data"]["sequence"]) for told in receiver.received()] == [
        ("run.ready", 1),
        ("run.cancelled", 2),
    ]
    assert posts(suspended["run"]["id"]) == [(1, "run.ready", "superseded"), (2, "run.cancelled", "delivered")]


def test_every_post_of_a_run_has_the_next_number(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, reviewer: User
) -> None:
    suspended = park()
    decide(suspended)
    assert post_next(agent_id=hooked.pk)
    again = {**suspended["asked"], "run": {"id": suspended["run"]["id"]}, "resume": {"mode": "webhook"}}
    again["approvals"] = [{**again["approvals"][0], "key": "call_2"}]
    answer = as_agent(hooked).post("/suspensions", again, If_Match="0")
    assert answer.status_code == 201, answer.content
    decide(answer.json())
    assert post_next(agent_id=hooked.pk)
    assert [(told["data"]["sequence"], told["data"]["checkpoint"]) for told in receiver.received()] == [(1, 0), (2, 1)]


def test_an_outage_delays_and_loses_nothing(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, move_clock: MoveClock
) -> None:
    runs = [park() for _ in range(3)]
    for suspended in runs:
        decide(suspended)
    receiver.answers(*[503] * 6)
    attempts = 0
    while attempts < 6:
        move_clock(timedelta(seconds=61))
        attempts += post_next(agent_id=hooked.pk)
    webhook = Webhook.objects.get()
    assert (webhook.failures, webhook.last_error) == (6, "it answered 503")
    assert webhook.failing_since is not None
    move_clock(timedelta(seconds=61))
    while post_next(agent_id=hooked.pk):  # the first that arrives brings the others on, however long they had to wait
        pass
    delivered = {told["data"]["run"] for told in receiver.received()[6:]}
    assert delivered == {suspended["run"]["id"] for suspended in runs}
    webhook.refresh_from_db()
    assert (webhook.failures, webhook.failing_since, webhook.last_error) == (0, None, "")
    tries = [told["id"] for told in receiver.received()]
    assert len(set(tries)) == 3 < len(tries)  # a post keeps its id


def test_the_first_that_arrives_brings_on_what_would_wait_for_long(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, move_clock: MoveClock
) -> None:
    decide(park())
    receiver.answers(*[503] * 8)
    for _ in range(8):
        move_clock(LONG)
        assert post_next(agent_id=hooked.pk)
    decide(park())
    move_clock(timedelta(seconds=61))
    assert [post_next(agent_id=hooked.pk) for _ in range(3)] == [True, True, False]
    assert not WebhookPost.objects.exclude(state="delivered").exists()


def test_one_attempt_at_a_time_and_others_do_not_wait_in_line(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, workers: WorkerFactory
) -> None:
    for _ in range(2):
        decide(park())
    receiver.answers({"status": 204, "hold": True})
    workers.start(queues="webhooks", pool="threads", concurrency=2)
    sweep_posts()  # or a doorbell of the decisions
    until(receiver.received, what="an attempt")
    assert not post_next(agent_id=hooked.pk)
    receiver.release()
    until(lambda: WebhookPost.objects.filter(state="delivered").count() == 2, what="both delivered")


def test_a_worker_killed_after_the_post_leaves_it_to_be_sent_again_with_the_same_id(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, workers: WorkerFactory, move_clock: MoveClock
) -> None:
    """At least once: the receiver has it, and nobody wrote that down."""
    suspended = park()
    decide(suspended)
    receiver.answers({"status": 204, "hold": True})
    worker = workers.start(queues="webhooks")
    sweep_posts()
    until(receiver.received, what="a post at the receiver")
    worker.signal(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
    receiver.release()
    assert posts(suspended["run"]["id"]) == [(1, "run.ready", "pending")]
    assert not post_next(agent_id=hooked.pk)  # the dead one's claim still stands
    move_clock(timedelta(seconds=61))
    workers.start(queues="webhooks")
    sweep_posts()  # or a doorbell that the dead one left in the queue
    until(lambda: posts(suspended["run"]["id"]) == [(1, "run.ready", "delivered")], what="a second delivery")
    first, second = receiver.received()
    assert (first["id"], first["data"]) == (second["id"], second["data"])


def test_a_slow_attempt_that_lost_its_claim_records_nothing(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    suspended = park()
    decide(suspended)

    def overtaken(*_: object, **__: object) -> Any:
        set_webhook(agent=hooked, url=receiver.url)
        raise NotPosted("too late to count")

    monkeypatch.setattr("runs.services.posting.post", overtaken)
    assert post_next(agent_id=hooked.pk)
    assert (WebhookPost.objects.get().attempts, Webhook.objects.get().failures) == (0, 0)


def test_a_receiver_that_asks_for_time_gets_it(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, move_clock: MoveClock
) -> None:
    decide(park())
    receiver.answers({"status": 429, "headers": {"Retry-After": "3000"}})
    assert post_next(agent_id=hooked.pk)
    move_clock(timedelta(seconds=2900))
    assert not post_next(agent_id=hooked.pk)
    move_clock(timedelta(seconds=200))
    assert post_next(agent_id=hooked.pk)
    assert WebhookPost.objects.get().state == "delivered"


def test_attempts_grow_rarer_and_end_after_a_week(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, move_clock: MoveClock
) -> None:
    suspended = park()
    decide(suspended)
    receiver.answers(*[500] * 500)
    for _ in range(24 * 7 * 2):
        move_clock(timedelta(minutes=30, seconds=10))
        post_next(agent_id=hooked.pk)
    sweep_posts()
    assert posts(suspended["run"]["id"]) == [(1, "run.ready", "given_up")]
    assert 150 < WebhookPost.objects.get().attempts < 350
    assert RunHead.objects.get().status == "queued"  # the agent can still ask
    assert as_agent(hooked).post(f"/runs/{suspended['run']['id']}/claim").status_code == 200


def test_gone_ends_the_attempts_until_it_is_verified_again(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, move_clock: MoveClock
) -> None:
    suspended = park()
    decide(suspended)
    receiver.answers(410)
    assert post_next(agent_id=hooked.pk)
    move_clock(LONG)
    assert not post_next(agent_id=hooked.pk)
    assert sweep_posts() == 0
    verify_webhook(agent=hooked)
    assert post_next(agent_id=hooked.pk)
    assert posts(suspended["run"]["id"]) == [(1, "run.ready", "delivered")]


def test_an_agent_that_is_switched_off_is_told_nothing(hooked: Agent, park: Park, decide: Decide) -> None:
    decide(park())
    Agent.objects.update(is_active=False)
    assert sweep_posts() == 0
    assert not post_next(agent_id=hooked.pk)
    Agent.objects.update(is_active=True)
    assert post_next(agent_id=hooked.pk)


def test_a_claim_that_ran_out_is_told_about_again(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, move_clock: MoveClock
) -> None:
    suspended = park()
    decide(suspended)
    assert post_next(agent_id=hooked.pk)
    assert as_agent(hooked).post(f"/runs/{suspended['run']['id']}/claim").status_code == 200
    sweep_posts()
    assert len(posts(suspended["run"]["id"])) == 1
    move_clock(timedelta(minutes=16))
    sweep_posts()
    assert RunHead.objects.get().status == "queued"
    assert post_next(agent_id=hooked.pk)
    assert [told["data"]["sequence"] for told in receiver.received()] == [1, 2]


def test_the_mode_needs_a_verified_webhook_and_stays_the_runs(agent: Agent, reviewer: User) -> None:
    caller, asked = as_agent(agent), suspension()
    asked["resume"] = {"mode": "webhook"}
    answer = caller.post("/suspensions", asked)
    assert (answer.status_code, pointers(answer)) == (400, {"#/resume/mode"})
    assert "no verified webhook" in answer.json()["errors"][0]["detail"]
    assert not Run.objects.exists()
    polled = caller.post("/suspensions", suspension()).json()
    vote = {"type": "approve", "review": polled["approvals"][0]["review"]}
    as_person(reviewer).post(f"/approvals/{polled['approvals'][0]['id']}/votes", vote)
    Webhook.objects.create(agent=agent, url="https://example.com/", secret=b"x", verified_at="2026-01-01T00:00:00Z")
    again = {**asked, "run": {"id": polled["run"]["id"]}}
    answer = caller.post("/suspensions", again, If_Match="0")
    assert (answer.status_code, pointers(answer)) == (400, {"#/resume/mode"})
