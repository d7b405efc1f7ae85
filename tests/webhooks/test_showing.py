"""What people see of webhooks: on the run's page and timeline, on the card, and in what needs attention."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from runs.models import Agent
from runs.services.posting import post_next
from tests.support.api import as_agent, in_browser
from tests.webhooks.conftest import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unrung")]


@pytest.fixture
def failing(hooked: Agent, park: Callable[..., Any], decide: Callable[..., None], receiver: Receiver) -> dict[str, Any]:
    suspended = park()
    decide(suspended)
    receiver.answers(500)
    assert post_next(agent_id=hooked.pk)
    return suspended


def page(user: User, path: str) -> str:
    answer = in_browser(user).client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_timeline_says_what_was_told_and_what_was_not(
    hooked: Agent, failing: dict[str, Any], reviewer: User, move_clock: Callable[[timedelta], None]
) -> None:
    def entry() -> dict[str, Any]:
        entries = as_agent(hooked).get(f"/runs/{failing['run']['id']}/timeline").json()["results"]
        (found,) = (each for each in entries if each["kind"] == "webhook")
        return found

    assert (entry()["what"], entry()["facts"]["state"]) == ("1 (run.ready)", "pending")
    assert (entry()["facts"]["attempts"], entry()["facts"]["last_error"]) == (1, "it answered 500")
    shown = page(reviewer, f"/runs/{failing['run']['id']}/")
    assert "Cannot tell its agent yet" in shown
    assert "after 1 attempt: it answered 500" in shown
    assert "which is told by webhook" in shown
    assert "its agent takes it up" in shown
    move_clock(timedelta(minutes=5))
    assert post_next(agent_id=hooked.pk)
    assert entry()["facts"]["state"] == "delivered"
    assert "Told its agent" in page(reviewer, f"/runs/{failing['run']['id']}/")


def test_what_cannot_be_told_needs_attention_until_the_agent_takes_it_up(
    hooked: Agent, failing: dict[str, Any], reviewer: User, move_clock: Callable[[timedelta], None]
) -> None:
    (asked,) = failing["approvals"]
    assert asked["id"] not in page(reviewer, "/?tab=attention")
    move_clock(timedelta(minutes=6))
    assert asked["id"] in page(reviewer, "/?tab=attention")
    assert "could not be told by webhook: it answered 500" in page(reviewer, f"/approvals/{asked['id']}/")
    assert as_agent(hooked).post(f"/runs/{failing['run']['id']}/claim").status_code == 200
    assert asked["id"] not in page(reviewer, "/?tab=attention")
    assert "its agent has it" in page(reviewer, f"/approvals/{asked['id']}/")


def test_an_agent_that_was_told_is_waited_for(
    hooked: Agent, park: Callable[..., Any], decide: Callable[..., None], reviewer: User,
    move_clock: Callable[[timedelta], None],
) -> None:  # fmt: skip
    suspended = park()
    decide(suspended)
    (asked,) = suspended["approvals"]
    assert "its agent is to be told" in page(reviewer, f"/approvals/{asked['id']}/")
    assert post_next(agent_id=hooked.pk)
    assert "its agent was told, and has not taken it up yet" in page(reviewer, f"/approvals/{asked['id']}/")
    move_clock(timedelta(minutes=6))
    assert asked["id"] not in page(reviewer, "/?tab=attention")
