"""Voting over HTTP: people only, one winner, and nothing but a clear verdict."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection

from approvals.models import AuditEvent, Decision, Vote
from runs.models import Agent, Team
from tests.support.api import Caller, as_agent, as_person, in_browser, pointers, suspension

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(agent: Agent) -> Caller:
    return as_agent(agent)


@pytest.fixture
def approval(caller: Caller) -> dict[str, Any]:
    return caller.post("/suspensions", suspension()).json()["approvals"][0]


@pytest.fixture
def voter(reviewer: User) -> Caller:
    return as_person(reviewer)


def votes(approval: dict[str, Any]) -> str:
    return f"/approvals/{approval['id']}/votes"


def refusals() -> int:
    return AuditEvent.objects.filter(type="attempt.refused").count()


def test_an_approval_is_approved_at_once(caller: Caller, voter: Caller, approval: dict[str, Any]) -> None:
    answer = voter.post(votes(approval), {"type": "approve", "review": approval["review"], "message": "fine"})
    assert answer.status_code == 201
    shown = caller.get(approval["url"]).json()
    assert shown["status"] == "approved"
    assert shown["decision"]["by"] == "reviewer"
    assert shown["decision"]["message"] == {"from": "reviewer", "text": "fine"}
    assert (shown["grant"]["status"], shown["grant"]["action"]) == ("ready", approval["action"])
    assert caller.get(f"/runs/{shown['run']}").json()["status"] == "queued"


def test_an_edit_changes_what_may_be_done(caller: Caller, voter: Caller, approval: dict[str, Any]) -> None:
    edit = {"type": "edit", "review": approval["review"], "args": {"order": "A-8"}}
    assert voter.post(votes(approval), edit).status_code == 201
    shown = caller.get(approval["url"]).json()
    assert (shown["status"], shown["decision"]["args"], shown["revision"]) == ("edited", {"order": "A-8"}, 2)
    assert shown["grant"]["action"] == shown["action"] != approval["action"]


def test_an_edit_that_does_not_fit_names_the_fields(caller: Caller, voter: Caller) -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 1000}}, "required": ["amount"]}
    asked = suspension(args={"amount": 10}, args_schema={**schema, "additionalProperties": False})
    approval = caller.post("/suspensions", asked).json()["approvals"][0]
    wrong: list[tuple[dict[str, Any], set[str]]] = [  # PrefectHQ/prefect#12279
        ({"amount": "abc"}, {"#/args/amount"}),
        ({"amount": 12.5}, {"#/args/amount"}),
        ({"amount": 5000}, {"#/args/amount"}),
        ({}, {"#/args/amount"}),
        ({"amount": 1, "x": 1}, {"#/args/x"}),
    ]
    for args, places in wrong:
        answer = voter.post(votes(approval), {"type": "edit", "review": approval["review"], "args": args})
        assert (answer.status_code, pointers(answer)) == (400, places)
    assert caller.get(approval["url"]).json()["status"] == "pending"
    answer = voter.post(votes(approval), {"type": "edit", "review": approval["review"], "args": {"amount": 50}})
    assert (answer.status_code, answer.json()["args"]) == (201, {"amount": 50})


@pytest.mark.parametrize(
    "verdict",
    [
        {},
        None,
        1,
        "approve",
        ["approve"],
        {"type": None},
        {"type": 1},
        {"type": True},
        {"type": "approve "},
        {"type": "APPROVE"},
        {"type": ["approve"]},
        {"type": "false"},
        {"type": "held"},
        {"type": ""},
        {"type": "approve", "message": None},
        {"type": "approve", "message": 5},
        {"type": "approve", "args": {}},
        {"type": "edit"},
        {"type": "edit", "args": None},
        {"type": "edit", "args": []},
        {"type": "edit", "args": ""},
        {"type": "respond"},
        {"type": "approve", "force": True},
    ],
)
def test_what_is_no_clear_verdict_is_400(voter: Caller, caller: Caller, approval: dict[str, Any], verdict: Any) -> None:
    # pydantic/pydantic-ai#8060, openai/openai-agents-python PR#4545
    body = {"review": approval["review"], **verdict} if isinstance(verdict, dict) and verdict else verdict
    answer = voter.post(votes(approval), body)
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")
    assert pointers(answer)
    assert caller.get(approval["url"]).json()["status"] == "pending"
    assert not Vote.objects.exists()


@pytest.mark.parametrize("text", [b'"a\\u0000b"', b'"\\ud83d"', b"NaN"])
def test_odd_comments_are_400(voter: Caller, approval: dict[str, Any], text: bytes) -> None:
    body = b'{"type": "approve", "review": "%s", "message": %s}' % (approval["review"].encode(), text)
    answer = voter.post(votes(approval), body)
    assert (answer.status_code, pointers(answer)) == (400, {"#/message"})


def test_emoji_in_a_comment_are_kept(voter: Caller, approval: dict[str, Any]) -> None:
    answer = voter.post(votes(approval), {"type": "reject", "review": approval["review"], "message": "🍸 👩‍👧"})
    assert answer.json()["decision"]["message"]["text"] == "🍸 👩‍👧"


def test_an_old_review_is_409_and_shows_the_current_one(voter: Caller, approval: dict[str, Any]) -> None:
    answer = voter.post(votes(approval), {"type": "approve", "review": "0" * 64})
    assert (answer.status_code, answer.json()["code"]) == (409, "stale_review")
    assert answer.json()["review"] == approval["review"]


def test_a_late_vote_is_told_who_decided_what_and_when(
    voter: Caller, person: Callable[..., User], approval: dict[str, Any]
) -> None:
    # heymrun/heym#563, gravitational/teleport#5622
    verdict = {"review": approval["review"], "type": "reject"}
    assert voter.post(votes(approval), verdict).status_code == 201
    answer = as_person(person("bea")).post(votes(approval), {**verdict, "type": "approve"})
    assert (answer.status_code, answer.json()["code"]) == (409, "already_decided")
    assert (answer.json()["by"], answer.json()["outcome"]) == ("reviewer", "rejected")
    assert answer.json()["at"].endswith("Z")


def test_of_many_at_once_one_decides(person: Callable[..., User], approval: dict[str, Any]) -> None:
    # mastra-ai/mastra#20443
    people = [as_person(person(f"p{number}")) for number in range(6)]

    def vote(number: int) -> int:
        try:
            kind = "approve" if number % 2 else "reject"
            return people[number].post(votes(approval), {"type": kind, "review": approval["review"]}).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        answers = sorted(threads.map(vote, range(6)))
    assert answers == [201, 409, 409, 409, 409, 409]
    assert Decision.objects.count() == 1


# --- the wrong person --------------------------------------------------------------------------------------------


def test_an_agents_key_never_votes(caller: Caller, approval: dict[str, Any]) -> None:
    # windmill-labs/windmill PR#10262
    answer = caller.post(votes(approval), {"type": "approve", "review": approval["review"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_eligible")
    assert not Vote.objects.exists()
    assert refusals() == 1


def test_a_stranger_learns_nothing(caller: Caller, approval: dict[str, Any]) -> None:
    # mastra-ai/mastra#22575
    stranger = as_person(User.objects.create_user("stranger", password="correct horse battery"))
    verdict = {"type": "approve", "review": approval["review"]}
    for there, nowhere in (
        (stranger.get(f"/approvals/{approval['id']}"), stranger.get(f"/approvals/{uuid4()}")),
        (stranger.post(votes(approval), verdict), stranger.post(f"/approvals/{uuid4()}/votes", verdict)),
        (stranger.post(f"/approvals/{approval['id']}/cancel"), stranger.post(f"/approvals/{uuid4()}/cancel")),
    ):
        assert (there.status_code, nowhere.status_code) == (404, 404)
        assert there.json().keys() == nowhere.json().keys()
    assert refusals() == 3
    assert stranger.get("/approvals").json() == {"results": [], "next": None}


def test_another_agent_sees_nothing(team: Team, approval: dict[str, Any]) -> None:
    other = as_agent(Agent.objects.create(team=team, name="other"))
    assert other.get(f"/approvals/{approval['id']}").status_code == 404
    assert other.post(f"/approvals/{approval['id']}/cancel").status_code == 404
    assert other.post(f"/approvals/{approval['id']}/consume").status_code == 404
    assert other.get("/approvals").json()["results"] == []


def test_an_owner_of_the_agent_cannot_vote(
    agent: Agent, reviewer: User, voter: Caller, approval: dict[str, Any]
) -> None:
    agent.owners.add(reviewer)
    answer = voter.post(votes(approval), {"type": "approve", "review": approval["review"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_eligible")
    assert refusals() == 1


def test_an_operator_sees_and_cannot_vote(person: Callable[..., User], approval: dict[str, Any]) -> None:
    operator = as_person(person("olga", "operator"))
    assert operator.get(f"/approvals/{approval['id']}").status_code == 200
    assert operator.post(votes(approval), {"type": "approve", "review": approval["review"]}).status_code == 403


def test_a_session_without_a_csrf_token_decides_nothing(reviewer: User, approval: dict[str, Any]) -> None:
    answer = in_browser(reviewer).post(votes(approval), {"type": "approve", "review": approval["review"]})
    assert answer.status_code == 403
    assert not Vote.objects.exists()


def test_a_get_never_decides(voter: Caller, approval: dict[str, Any]) -> None:
    # activepieces/activepieces#14252
    assert voter.get(votes(approval)).status_code == 405
    assert voter.client.head(approval["url"], headers={"User-Agent": "Slackbot-LinkExpanding"}).status_code == 200
    assert voter.get(approval["url"]).json()["status"] == "pending"


# --- lists -------------------------------------------------------------------------------------------------------


def test_held_reads_as_pending(caller: Caller, approval: dict[str, Any]) -> None:
    assert caller.get("/approvals?status=held").status_code == 400
    assert [found["id"] for found in caller.get("/approvals?status=pending").json()["results"]] == [approval["id"]]
    assert caller.get("/approvals?status=approved").json()["results"] == []
    assert caller.get("/approvals?key=call_1&tool=refund&risk=low").json()["results"]
    assert pointers(caller.get("/approvals?run=7")) == {"run"}
