"""The list of what was approved and has not been performed."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.services.grants import revoke
from runs.models import Agent, Run, RunHead
from runs.principals import Person
from runs.states import ResumeMode, RunStatus
from tests.approvals.scenes import cast, opened
from tests.support.api import as_agent

pytestmark = pytest.mark.django_db(transaction=True)


def listed(client: Client) -> str:
    return client.get("/approvals/unperformed/").content.decode()


def test_it_says_what_each_waits_for(agent: Agent, reviewer: User, client: Client) -> None:
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    card = opened(agent)
    assert str(card.pk) not in listed(client)
    cast(card, reviewer)
    assert f"/approvals/{card.pk}/" in listed(client)
    for status, mode, why in (
        (RunStatus.QUEUED, ResumeMode.HOSTED, "the next free worker takes it"),
        (RunStatus.QUEUED, ResumeMode.POLL, "its agent takes it up"),
        (RunStatus.BLOCKED, ResumeMode.HOSTED, "tool &#x27;refund&#x27; is not registered"),
    ):
        detail = "tool 'refund' is not registered" if status == RunStatus.BLOCKED else ""
        RunHead.objects.filter(run=card.run).update(status=status, reason="", detail=detail)
        Run.objects.filter(pk=card.run_id).update(resume_mode=mode)
        assert why in listed(client)
    assert "1 approved, not yet performed" in client.get("/?tab=history").content.decode()


def test_what_was_spent_or_taken_back_is_gone(agent: Agent, reviewer: User, client: Client) -> None:
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    spent, revoked = opened(agent), opened(agent)
    for card in (spent, revoked):
        cast(card, reviewer)
    RunHead.objects.filter(run=spent.run).update(status=RunStatus.QUEUED, reason="")
    path = f"/api/v1/approvals/{spent.pk}/consume"
    assert as_agent(agent).client.post(path, b"{}", content_type="application/json").status_code == 200
    revoke(approval_id=revoked.pk, by=Person(reviewer), reason="no longer")
    page = listed(client)
    assert str(spent.pk) not in page
    assert str(revoked.pk) not in page
    assert "Nothing is outstanding" in page
    assert "not yet performed" not in client.get("/?tab=history").content.decode()
