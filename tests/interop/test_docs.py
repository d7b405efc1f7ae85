"""What `docs/api.md` shows works as it is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from fermata.live.longpoll import LONGEST
from runs.idempotency import KEPT_DAYS
from runs.models import Agent
from runs.services.external import CLAIM_LASTS
from runs.strictjson import MAX_DEPTH
from tests.support.api import as_agent, as_person

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text()


def test_the_way_of_an_outside_agent(agent: Agent, reviewer: User) -> None:
    caller = as_agent(agent)
    example, *_ = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    parked = caller.post("/suspensions", json.loads(example), Idempotency_Key="order-7731").json()
    run, approval = parked["run"]["id"], parked["approvals"][0]

    verdict = {"type": "approve", "review": approval["review"]}
    assert as_person(reviewer).post(f"/approvals/{approval['id']}/votes", verdict).status_code == 201
    assert caller.get(f"/approvals/{approval['id']}?wait=30").json()["status"] == "approved"

    token = {"resume_token": caller.post(f"/runs/{run}/claim").json()["resume_token"]}
    spend = {**token, "action": approval["action"]}
    spent = caller.post(f"/approvals/{approval['id']}/consume", spend, Idempotency_Key="order-7731/call_1").json()
    assert (spent["args"], spent["replayed"]) == ({"order": "A-7", "amount": "49.90"}, False)
    outcome = {**token, "status": "succeeded", "result": {"receipt": 7}}
    assert caller.post(f"/approvals/{approval['id']}/outcome", outcome).status_code == 200

    ended = caller.post(f"/runs/{run}/finish", {**token, "result": {"refunded": True}}).json()
    assert (ended["status"], ended["result"]) == ("completed", {"refunded": True})


def test_its_figures_are_right() -> None:
    assert f"at most {LONGEST}" in TEXT
    assert f"more than {MAX_DEPTH} levels" in TEXT
    assert (KEPT_DAYS, CLAIM_LASTS.total_seconds()) == (30, 15 * 60)
    assert f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE >> 20} MB a request" in TEXT
    assert f"{settings.FERMATA_SNAPSHOT_LIMIT >> 20} MB a snapshot" in TEXT


def test_every_path_that_it_names_is_served(agent: Agent) -> None:
    served = as_agent(agent).get("/schema/?format=json").json()["paths"]
    for path in re.findall(r"`(?:POST|GET) ([a-zID/]+)", TEXT):
        pattern = re.compile(f"/api/v1/{path}".replace("ID", r"\{[a-z_]+\}"))
        assert any(pattern.fullmatch(known) for known in served), path
