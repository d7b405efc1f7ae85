"""What the README shows has to work."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from approvals.models import Approval
from approvals.services.voting import vote
from runs.engine.executor import execute
from runs.models import Agent, RunHead
from tests.support.api import as_agent
from tests.support.processes import ROOT

README = (ROOT / "README.md").read_text()


@pytest.mark.django_db(transaction=True)
def test_the_suspension_in_the_readme_is_decided_and_resumed(
    agent: Agent, reviewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid: list[str] = []
    monkeypatch.setattr(
        "examples.refunds.post_refund", lambda **call: paid.append(call["amount"]) or {"refund": "rf-1"}
    )
    shown = re.search(r"-d '(\{.*?\})'\n```", README, re.DOTALL)
    assert shown
    answer = as_agent(agent).post("/suspensions", json.loads(shown[1]), Idempotency_Key="order-7731")
    assert answer.status_code == 201, answer.content
    approval = Approval.objects.get(id=answer.json()["approvals"][0]["id"])
    vote(
        approval_id=approval.id,
        voter=reviewer,
        verdict="approve",
        review=approval.review,
        args=None,
        message="",
        hold=timedelta(0),
    )
    execute(approval.run_id, worker="test")
    assert RunHead.objects.get(run=approval.run).status == "completed"
    assert paid == ["49.90"]


def test_every_file_that_the_readme_names_is_there() -> None:
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    assert links
    missing = [link for link in links if not (ROOT / link).exists()]
    assert missing == []
