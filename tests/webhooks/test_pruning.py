"""Posts are deleted a while after they were settled; never what is still to be told, nor what the next one follows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from runs.models import Agent, WebhookPost
from runs.services import retention
from runs.services.controlling import cancel_run
from runs.services.posting import post_next, sweep_posts
from runs.services.retention import apply_retention
from tests.support.api import as_agent, in_browser
from tests.webhooks.conftest import Receiver, posts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unrung")]

Park = Callable[..., dict[str, Any]]
Decide = Callable[..., None]
MoveClock = Callable[[timedelta], None]
KEPT = timedelta(days=90)


def again(agent: Agent, suspended: dict[str, Any], checkpoint: int) -> dict[str, Any]:
    """Park the run anew, at another question."""
    asked = {**suspended["asked"], "run": {"id": suspended["run"]["id"]}, "resume": {"mode": "webhook"}}
    asked["approvals"] = [{**asked["approvals"][0], "key": f"again_{checkpoint}"}]
    answer = as_agent(agent).post("/suspensions", asked, If_Match=str(checkpoint))
    assert answer.status_code == 201, answer.content
    return {**answer.json(), "asked": asked}


def test_a_run_that_goes_on_keeps_its_newest_post_and_its_count(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, reviewer: User, move_clock: MoveClock
) -> None:
    suspended = park()
    run = suspended["run"]["id"]
    decide(suspended)
    assert post_next(agent_id=hooked.pk)
    suspended = again(hooked, suspended, 0)
    decide(suspended)
    assert post_next(agent_id=hooked.pk)
    move_clock(KEPT - timedelta(minutes=1))
    assert apply_retention().posts == 0
    move_clock(timedelta(minutes=2))
    assert apply_retention().posts == 1
    assert posts(run) == [(2, "run.ready", "delivered")]
    card = in_browser(reviewer).get(f"http://testserver/approvals/{suspended['approvals'][0]['id']}/")
    assert "its agent was told" in card.content.decode()

    decide(again(hooked, suspended, 1))
    assert posts(run) == [(2, "run.ready", "delivered"), (3, "run.ready", "pending")]
    assert post_next(agent_id=hooked.pk)
    assert [told["data"]["sequence"] for told in receiver.received()] == [1, 2, 3]


def test_of_a_run_that_has_ended_every_post_goes(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, move_clock: MoveClock
) -> None:
    suspended, other = park(), park()
    decide(suspended)
    cancel_run(run_id=suspended["run"]["id"], actor="system")
    assert post_next(agent_id=hooked.pk)
    assert posts(suspended["run"]["id"]) == [(1, "run.ready", "superseded"), (2, "run.cancelled", "delivered")]
    receiver.answers(500)
    decide(other)
    assert post_next(agent_id=hooked.pk)
    move_clock(timedelta(days=8))
    sweep_posts()
    cancel_run(run_id=other["run"]["id"], actor="system")
    move_clock(KEPT)
    assert apply_retention().posts == 3
    assert list(WebhookPost.objects.values_list("type", "state")) == [("run.cancelled", "pending")]


def test_what_could_not_be_told_still_needs_attention(
    hooked: Agent, park: Park, decide: Decide, receiver: Receiver, reviewer: User, move_clock: MoveClock
) -> None:
    suspended = park()
    decide(suspended)
    move_clock(timedelta(days=8))
    sweep_posts()
    move_clock(2 * KEPT)
    assert apply_retention().posts == 0
    assert posts(suspended["run"]["id"]) == [(1, "run.ready", "given_up")]
    attention = in_browser(reviewer).get("http://testserver/?tab=attention").content.decode()
    assert suspended["approvals"][0]["id"] in attention


def test_they_go_in_batches_until_the_process_is_to_stop(
    hooked: Agent, park: Park, decide: Decide, move_clock: MoveClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    for _ in range(5):
        suspended = park()
        decide(suspended)
        cancel_run(run_id=suspended["run"]["id"], actor="system")
    while post_next(agent_id=hooked.pk):
        pass
    move_clock(2 * KEPT)
    stop = iter([False, True])
    monkeypatch.setattr(retention, "is_draining", lambda: next(stop))
    assert apply_retention().posts == 2
    monkeypatch.setattr(retention, "is_draining", lambda: False)
    assert apply_retention().posts == 8
    assert not WebhookPost.objects.exists()


def test_they_are_kept_for_ever_where_that_is_wanted(
    hooked: Agent, park: Park, decide: Decide, move_clock: MoveClock, settings: Any
) -> None:
    settings.FERMATA_KEEP_POSTS_DAYS = None
    suspended = park()
    decide(suspended)
    cancel_run(run_id=suspended["run"]["id"], actor="system")
    assert post_next(agent_id=hooked.pk)
    move_clock(10 * KEPT)
    assert apply_retention().posts == 0
    assert len(posts(suspended["run"]["id"])) == 2
