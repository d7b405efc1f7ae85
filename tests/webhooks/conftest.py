"""An agent with a receiver of its own, and runs of it that people decide about."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from runs.models import Agent, WebhookPost
from runs.services import announcing
from runs.services.webhooks import set_webhook, verify_webhook
from tests.support.api import as_agent, as_person, suspension
from tests.support.processes import ROOT


class Receiver:
    """The process of `tests.webhooks.receiver`."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/webhooks/receiver.py")], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def control(self, **changes: Any) -> None:
        self._ask("/control", json.dumps(changes).encode())

    def answers(self, *answers: int | dict[str, Any]) -> None:
        """What it answers next, one after the other; then 204."""
        self.control(answers=[{"status": each} if isinstance(each, int) else each for each in answers])

    def release(self) -> None:
        self._ask("/release", b"{}")

    def received(self) -> list[dict[str, Any]]:
        return json.loads(self._ask("/received"))

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        with urlopen(Request(f"http://127.0.0.1:{self.port}{path}", body), timeout=10) as response:
            return response.read()

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    started = Receiver()
    yield started
    started.close()


@pytest.fixture
def unrung(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is rung for: the test makes the attempts itself."""
    monkeypatch.setattr(announcing, "ring_post", lambda agent_id: None)


@pytest.fixture
def hooked(transactional_db: None, agent: Agent, receiver: Receiver) -> Agent:
    """The agent, with its receiver registered and verified."""
    registered = set_webhook(agent=agent, url=receiver.url)
    receiver.control(secret=registered.secret)
    verify_webhook(agent=agent)
    return agent


@pytest.fixture
def park(hooked: Agent) -> Callable[..., dict[str, Any]]:
    """Park a run of the agent at approvals of these keys; its suspension."""

    def parked(*keys: str) -> dict[str, Any]:
        asked = suspension()
        asked["resume"] = {"mode": "webhook"}
        asked["approvals"] = [{**asked["approvals"][0], "key": key} for key in keys or ("call_1",)]
        answer = as_agent(hooked).post("/suspensions", asked)
        assert answer.status_code == 201, answer.content
        return {**answer.json(), "asked": asked}

    return parked


@pytest.fixture
def decide(reviewer: User) -> Callable[..., None]:
    """Decide about everything that the suspension asks."""

    def decide_all(suspended: dict[str, Any], verdict: str = "approve") -> None:
        for approval in suspended["approvals"]:
            vote = {"type": verdict, "review": approval["review"]}
            answer = as_person(reviewer).post(f"/approvals/{approval['id']}/votes", vote)
            assert answer.status_code == 201, answer.content

    return decide_all


def posts(run_id: str | UUID) -> list[tuple[int, str, str]]:
    return list(WebhookPost.objects.filter(run=run_id).order_by("sequence").values_list("sequence", "type", "state"))
