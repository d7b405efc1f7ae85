"""Snapshots of many megabytes: kept to the byte, resumed, refused with the figure, and in no list's way."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.gates import posted_approvals
from approvals.models import Approval
from approvals.services.voting import vote
from runs.authoring import RunContext, entry, tool, workflow
from runs.engine.executor import execute
from runs.models import Agent, Run
from tests.engine import flows  # noqa: F401 - registers the workflows
from tests.engine.deploys import deployment
from tests.support.api import as_agent, in_browser, pointers, suspension

__all__ = ["deployment"]

MEGABYTE = 1024 * 1024


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def large(megabytes: int) -> dict[str, Any]:
    """A request whose state takes that much; half of it does not compress."""
    source = random.Random(7)
    noise = {str(n): source.randbytes(MEGABYTE // 4).hex() for n in range(megabytes)}
    asked = suspension(tool="test/note")
    asked["snapshot"] |= {
        "state": {"noise": noise, "text": "Grüße, 𝄐 " * (megabytes * MEGABYTE // 2 // 16)},
        "history": [{"role": "user", "content": "x" * 1000} for _ in range(100)],
    }
    return asked


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("deployment")
def test_twelve_megabytes_are_resumed_to_the_byte(agent: Agent, reviewer: User) -> None:
    @tool(effect="once", name="test/note", gated=True)
    def note(order: str) -> str:
        return order

    @workflow("test/large")
    class Large:
        @entry(external=True)
        def act(self, run: RunContext) -> object:
            posted_approvals(run)
            return run.complete({"state": digest(run.state), "history": digest([dict(item) for item in run.history])})

    asked = large(12)
    asked["resume"] = {"mode": "workflow", "workflow": "test/large", "phase": "act"}
    calls = as_agent(agent)
    response = calls.post("/suspensions", asked)
    assert response.status_code == 201, response.content[:1000]
    run_id = response.json()["run"]["id"]
    snapshot = calls.get(f"/runs/{run_id}/snapshot").json()
    expected = {"state": digest(asked["snapshot"]["state"]), "history": digest(asked["snapshot"]["history"])}
    assert {name: digest(snapshot[name]) for name in expected} == expected

    approval = Approval.objects.get()
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)
    assert execute(UUID(run_id), worker="test")
    assert calls.get(f"/runs/{run_id}").json()["result"] == expected


@pytest.mark.django_db
def test_more_than_the_limit_is_refused_with_the_figure(agent: Agent, settings: Any) -> None:
    response = as_agent(agent).post("/suspensions", json.dumps(large(17), ensure_ascii=False).encode())
    problem = response.json()
    assert (response.status_code, problem["code"]) == (413, "snapshot_too_large")
    assert problem["limit"] == settings.FERMATA_SNAPSHOT_LIMIT == 16 * MEGABYTE
    assert 16 * MEGABYTE < problem["size"] < 18 * MEGABYTE
    assert str(problem["size"]) in problem["detail"]
    assert pointers(response) == {"#/snapshot"}
    assert not Run.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("deployment")
def test_whatever_else_is_posted_has_the_same_limit(agent: Agent, reviewer: User, settings: Any) -> None:
    settings.FERMATA_SNAPSHOT_LIMIT = 10_000
    calls, more = as_agent(agent), {"text": "x" * 10_000}
    asleep, awake = (calls.post("/suspensions", suspension()).json() for _ in range(2))
    approval = Approval.objects.get(run=awake["run"]["id"])
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)
    for path, field, body in (
        ("/runs", "input", {"workflow": "test/steps", "input": more}),
        (f"/runs/{asleep['run']['id']}/events/paid", "payload", {"payload": more}),
        (f"/runs/{awake['run']['id']}/finish", "result", {"result": more}),
    ):
        response = calls.post(path, body)
        problem = response.json()
        assert (response.status_code, problem["code"], problem["limit"]) == (413, "snapshot_too_large", 10_000)
        assert problem["detail"] == f"The {field} holds {problem['size']} bytes; the limit is 10000."
        assert pointers(response) == {f"#/{field}"}
    assert Run.objects.count() == 2


@pytest.mark.django_db
def test_a_larger_request_is_not_even_read(agent: Agent, settings: Any) -> None:
    response = as_agent(agent).post("/suspensions", large(25))
    assert (response.status_code, response.json()["code"]) == (413, "request_too_large")
    assert response.json()["limit"] == settings.DATA_UPLOAD_MAX_MEMORY_SIZE


@pytest.mark.django_db
def test_no_list_reads_what_it_does_not_show(agent: Agent, reviewer: User) -> None:
    calls = as_agent(agent)
    run_id = calls.post("/suspensions", suspension()).json()["run"]["id"]
    Run.objects.update(input=bytes(MEGABYTE), result=bytes(MEGABYTE))
    pages = in_browser(reviewer)
    lists = (f"/runs/{run_id}/checkpoints", f"/runs/{run_id}/timeline", "/runs", "/approvals")
    for who, path in [(calls, path) for path in lists] + [(pages, "http://testserver/runs/")]:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert who.get(path).status_code == 200
        # The run itself is read by the pages about one run.
        about_one = run_id in path
        selected = [q["sql"].split(" FROM ")[0] for q in queries if q["sql"].startswith("SELECT")]
        for columns in selected:
            if "rule_change" in columns:  # small, and told on every page
                continue
            assert '"body"' not in columns
            assert '"outcome"' not in columns or "grant" in columns
            assert about_one or '"input"' not in columns
            assert about_one or '"result"' not in columns
