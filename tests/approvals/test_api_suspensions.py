"""Suspending over HTTP: all of it or nothing, once, and nothing that could be read in two ways."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import override_settings
from django.utils.dateparse import parse_datetime

from approvals.models import Approval
from checkpoints.models import Checkpoint
from runs.models import Agent, Run
from tests.support.api import Caller, as_agent, as_person, pointers, suspension

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(agent: Agent) -> Caller:
    return as_agent(agent)


def refused(caller: Caller, body: Any, status: int = 400) -> set[str]:
    """Where the refusal says that something is wrong; nothing is stored."""
    answer = caller.post("/suspensions", body)
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    assert (Run.objects.count(), Approval.objects.count(), Checkpoint.objects.count()) == (0, 0, 0)
    return pointers(answer) if "errors" in answer.json() else set()


def test_it_parks_the_run(caller: Caller) -> None:
    answer = caller.post("/suspensions", suspension())
    assert answer.status_code == 201
    run, [approval] = answer.json()["run"], answer.json()["approvals"]
    assert run["status"] == "suspended"
    assert (approval["key"], approval["status"]) == ("call_1", "pending")
    assert len(approval["action"]) == len(approval["review"]) == 64
    shown = caller.get(approval["url"]).json()
    assert (shown["run"], shown["args"], shown["review"]) == (run["id"], {"order": "A-7"}, approval["review"])
    assert caller.get(f"/approvals?run={run['id']}&status=pending").json()["results"] == [shown]


def test_arguments_keep_every_digit(caller: Caller) -> None:
    body = json.dumps(suspension(args={"amount": "AMOUNT"})).replace('"AMOUNT"', "398.6500000000000001554312234")
    approval = caller.post("/suspensions", body.encode()).json()["approvals"][0]
    assert b"398.6500000000000001554312234" in caller.get(approval["url"]).content


# --- once --------------------------------------------------------------------------------------------------------


def test_the_same_request_again_gets_the_first_answer(caller: Caller) -> None:
    # microsoft/powercat-business-approvals-kit#292
    asked = suspension()
    first, again = (caller.post("/suspensions", asked, Idempotency_Key="k") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert Approval.objects.count() == 1


def test_in_parallel_too(agent: Agent) -> None:
    caller, asked = as_agent(agent), suspension()

    def send(_: int) -> tuple[int, bytes]:
        try:
            answer = caller.post("/suspensions", asked, Idempotency_Key="k")
            return answer.status_code, answer.content
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        answers = set(threads.map(send, range(6)))
    assert len(answers) == 1
    assert next(iter(answers))[0] == 201
    assert (Run.objects.count(), Approval.objects.count()) == (1, 1)


def test_a_reused_key_creates_nothing(caller: Caller) -> None:
    # nensii21/devlink PR#1200
    asked = suspension(args={"amount": 100})
    caller.post("/suspensions", asked, Idempotency_Key="k")
    asked["approvals"][0]["args"] = {"amount": 200}
    answer = caller.post("/suspensions", asked, Idempotency_Key="k")
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_conflict")
    assert Approval.objects.count() == 1


def test_without_a_key_every_request_is_its_own(caller: Caller) -> None:
    for title in ("Trolha", "trolha"):
        assert caller.post("/suspensions", suspension(title=title)).status_code == 201
    assert Approval.objects.count() == 2


# --- what is wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", ["null", '""', "[]", "7", None])
def test_arguments_are_an_object(caller: Caller, args: str | None) -> None:
    # pydantic/pydantic-ai#8060, openai/openai-agents-python#3337
    asked = suspension()
    if args is None:
        del asked["approvals"][0]["args"]
    else:
        asked["approvals"][0]["args"] = json.loads(args)
    assert refused(caller, asked) == {"#/approvals/0/args"}


def test_no_arguments_are_fine(caller: Caller) -> None:
    assert caller.post("/suspensions", suspension(args={})).status_code == 201


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"key": ""}, "key"),
        ({"key": 1}, "key"),
        ({"tool": "has a space"}, "tool"),
        ({"tool": "refünd"}, "tool"),
        ({"tool": "x" * 129}, "tool"),
        ({"title": ""}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"risk": "extreme"}, "risk"),
        ({"risk": "low "}, "risk"),
        ({"allowed": ["approve", "shrug"]}, "allowed/1"),
        ({"allowed": "approve"}, "allowed"),
        ({"expires_in": 0}, "expires_in"),
        ({"expires_in": "60"}, "expires_in"),
        ({"expires_in": 1.5}, "expires_in"),
        ({"expires_in": True}, "expires_in"),
        ({"expires_at": "2026-10-25T02:30:00"}, "expires_at"),
        ({"expires_at": "tomorrow"}, "expires_at"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_in"),
        ({"expires_at": "2999-01-01T00:00:00Z", "expires_in": 60}, "expires_at"),
        ({"reviewers": {"groups": ["nobody"]}}, "reviewers/groups/0"),
        ({"reviewers": {"users": ["nobody"]}}, "reviewers/users/0"),
        ({"reviewers": {"teams": []}}, "reviewers/teams"),
        ({"args_schema": []}, "args_schema"),
        ({"args_schema": {"type": 7}}, "args_schema/type"),
        ({"args_schema": {"$ref": "https://evil.example/"}}, "args_schema/$ref"),
        ({"reviewer": {}}, "reviewer"),
    ],
)
def test_a_wrong_field_is_named(caller: Caller, changes: dict[str, Any], wrong: str) -> None:
    assert refused(caller, suspension(**changes)) == {f"#/approvals/0/{wrong}"}


@pytest.mark.parametrize(
    ("path", "value", "wrong"),
    [
        (("resume",), {"mode": "webhook"}, "#/resume/mode"),
        (("resume",), {"mode": "later"}, "#/resume/mode"),
        (("resume",), {}, "#/resume/mode"),
        (("resume",), {"mode": "workflow", "workflow": "x"}, "#/resume/phase"),
        (("resume",), {"mode": "poll", "phase": "x"}, "#/resume/phase"),
        (("snapshot", "schema"), "refund-agent", "#/snapshot/schema"),
        (("snapshot", "schema"), "refund-agent/x", "#/snapshot/schema"),
        (("snapshot", "schema"), " refund-agent/1", "#/snapshot/schema"),
        (("snapshot", "schema"), "refund-agent/1\n", "#/snapshot/schema"),
        (("snapshot", "schema"), "x" * 81 + "/1", "#/snapshot/schema"),
        (("snapshot", "state"), [], "#/snapshot/state"),
        (("snapshot", "history"), {}, "#/snapshot/history"),
        (("snapshot", "secrets"), {}, "#/snapshot/secrets"),
        (("approvals",), [], "#/approvals"),
        (("approvals",), {}, "#/approvals"),
        (("run", "external_id"), "x" * 201, "#/run/external_id"),
        (("runs",), {}, "#/runs"),
    ],
)
def test_a_wrong_part_is_named(caller: Caller, path: tuple[str, ...], value: Any, wrong: str) -> None:
    asked: Any = suspension()
    place = asked
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert refused(caller, asked) == {wrong}


def test_a_key_used_twice_is_named(caller: Caller) -> None:
    asked = suspension()
    asked["approvals"] *= 2
    assert refused(caller, asked) == {"#/approvals/1/key"}


def test_a_credential_in_the_snapshot_is_refused_and_not_repeated(caller: Caller) -> None:
    asked = suspension()
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    asked["snapshot"]["state"]["aws"] = {"key": secret}
    answer = caller.post("/suspensions", asked)
    assert (answer.status_code, pointers(answer)) == (400, {"#/snapshot/state/aws/key"})
    assert secret not in answer.content.decode()


# --- odd values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["args", "state", "description"])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        (r'"a\u0000b"', "nul"),  # langchain-ai/langgraph#1878
        (r'"\ud83d"', "lone_surrogate"),  # agent0ai/agent-zero#1773
        ("NaN", "not_a_number"),  # encode/django-rest-framework#5235
        ("-Infinity", "not_a_number"),
        ("1e400", "number_out_of_range"),
        ('{"a": 1, "a": 2}', "duplicate_key"),
        ("[" * 300 + "]" * 300, "too_deep"),  # flop-labs/technocore-chat#130
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(caller: Caller, place: str, text: str, code: str) -> None:
    asked = suspension(description="MARK") if place == "description" else suspension(args={"x": "MARK"})
    where = {"args": "/approvals/0/args/x", "state": "/snapshot/state/x", "description": "/approvals/0/description"}
    if place == "state":
        asked = suspension()
        asked["snapshot"]["state"]["x"] = "MARK"
    answer = caller.post("/suspensions", json.dumps(asked).replace('"MARK"', text).encode())
    assert answer.status_code == 400
    [error] = answer.json()["errors"]
    assert error["code"] == code
    assert error["pointer"].startswith(f"#{where[place]}")
    assert not Run.objects.exists()


def test_twenty_thousand_levels_are_refused_quickly(caller: Caller) -> None:
    answer = caller.post("/suspensions", b"[" * 20_000 + b"]" * 20_000)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "too_deep")


@pytest.mark.parametrize("text", ["\\u0000 as it is written", "🍸", "👩‍👧" * 50_000, "\u202e\u2066x\u2069", "\x7f\x85"])
def test_odd_text_comes_back_as_it_was(caller: Caller, text: str) -> None:
    asked = suspension(args={"x": text}, description=text[:1000])
    asked["snapshot"]["state"]["x"] = text
    answer = caller.post("/suspensions", asked)
    assert answer.status_code == 201
    approval = caller.get(answer.json()["approvals"][0]["url"]).json()
    assert (approval["args"]["x"], approval["description"]) == (text, text[:1000])
    assert caller.get(f"/runs/{approval['run']}/snapshot").json()["state"]["x"] == text


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_another_media_type_is_415(caller: Caller, content_type: str) -> None:
    answer = caller.post("/suspensions", b"{}", content_type=content_type)
    assert (answer.status_code, answer["Content-Type"]) == (415, "application/problem+json")


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"1", b'"x"', b"[]", b"\xff\xfe"])
def test_no_body_is_a_500(caller: Caller, body: bytes) -> None:
    refused(caller, body)


def test_other_methods_are_problems(caller: Caller) -> None:
    answer = caller.get("/suspensions")
    assert (answer.status_code, answer["Content-Type"]) == (405, "application/problem+json")
    assert caller.get("/nonsense")["Content-Type"] == "application/problem+json"
    assert caller.get("/runs", Accept="text/html").status_code == 406


# --- limits ------------------------------------------------------------------------------------------------------


@override_settings(FERMATA_SNAPSHOT_LIMIT=10_000)
def test_a_snapshot_over_the_limit_is_413_with_the_figure(caller: Caller) -> None:
    asked = suspension()
    asked["snapshot"]["state"]["x"] = "x" * 20_000
    answer = caller.post("/suspensions", asked)
    assert (answer.status_code, answer.json()["limit"]) == (413, 10_000)
    assert not Run.objects.exists()


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1_000)
def test_a_body_over_the_limit_is_413_with_the_figure(caller: Caller) -> None:
    answer = caller.post("/suspensions", suspension(description="x" * 2_000))
    assert (answer.status_code, answer.json()["code"]) == (413, "request_too_large")
    assert answer.json()["limit"] == 1_000


@override_settings(FERMATA_PENDING_CAP=2)
def test_too_many_pending_is_429(caller: Caller) -> None:
    for _ in range(2):
        assert caller.post("/suspensions", suspension()).status_code == 201
    answer = caller.post("/suspensions", suspension())
    assert (answer.status_code, answer.json()["cap"]) == (429, 2)


# --- time --------------------------------------------------------------------------------------------------------


def test_a_deadline_stays_where_it_was_across_dst(caller: Caller) -> None:
    # pretix/pretix#296, anna-is-cute/paste#70
    year = datetime.now(tz=UTC).year + 1
    answer = caller.post("/suspensions", suspension(expires_at=f"{year}-10-25T12:00:00+02:00"))
    expires_at = parse_datetime(caller.get(answer.json()["approvals"][0]["url"]).json()["expires_at"])
    assert abs(expires_at - datetime(year, 10, 25, 10, tzinfo=UTC)) < timedelta(seconds=2)


def test_times_are_utc(caller: Caller) -> None:
    approval = caller.post("/suspensions", suspension(expires_in=86_400)).json()["approvals"][0]
    shown = caller.get(approval["url"]).json()
    assert parse_datetime(shown["expires_at"]) - parse_datetime(shown["created_at"]) == timedelta(days=1)
    assert shown["expires_at"].endswith("Z")


# --- workflows ---------------------------------------------------------------------------------------------------


def entering(phase: str = "act", **changes: Any) -> dict[str, Any]:
    asked = suspension(args={"order": "A-7", "amount": "49.90"}, **changes)
    asked["resume"] = {"mode": "workflow", "workflow": "refund-agent", "phase": phase}
    return asked


def test_a_workflow_takes_over_at_the_named_phase(caller: Caller, reviewer: User) -> None:
    answer = caller.post("/suspensions", entering())
    assert answer.status_code == 201
    approval, run = answer.json()["approvals"][0], answer.json()["run"]
    verdict = {"type": "approve", "review": approval["review"]}
    assert as_person(reviewer).post(f"/approvals/{approval['id']}/votes", verdict).status_code == 201
    shown = caller.get(run["url"]).json()
    assert (shown["status"], shown["workflow"], shown["phase"]) == ("queued", "refund-agent", "act")
    assert caller.post(f"/approvals/{approval['id']}/consume").json()["code"] == "wrong_state"


def test_only_phases_for_outsiders_can_be_entered(caller: Caller) -> None:
    answer = caller.post("/suspensions", entering("start"))
    assert (answer.status_code, answer.json()["code"], answer.json()["known"]) == (400, "unknown_phase", ["act"])


def test_a_workflow_performs_only_its_own_tools(caller: Caller) -> None:
    assert refused(caller, entering(tool="format-disk")) == {"#/approvals/0/tool"}


# --- going on ----------------------------------------------------------------------------------------------------


def test_reviewers_can_be_asked_for(caller: Caller) -> None:
    Group.objects.create(name="finance")
    asked = suspension(reviewers={"groups": ["finance"], "users": []})
    assert caller.post("/suspensions", asked).status_code == 201


def test_if_match_must_be_a_checkpoint(caller: Caller) -> None:
    answer = caller.post("/suspensions", suspension(), If_Match="x")
    assert (answer.status_code, pointers(answer)) == (400, {"If-Match"})


def test_there_must_be_something_to_continue(caller: Caller) -> None:
    answer = caller.post("/suspensions", suspension(), If_Match="0")
    assert (answer.status_code, answer.json()["code"]) == (404, "nothing_to_continue")


def test_a_sleeping_run_cannot_be_continued(caller: Caller) -> None:
    asked = suspension()
    run = caller.post("/suspensions", asked).json()["run"]
    assert caller.post("/suspensions", asked, If_Match="7").json()["code"] == "stale_checkpoint"
    assert caller.post("/suspensions", asked, If_Match="0").json()["code"] == "wrong_state"
    asked["run"] = {"id": run["id"]}
    assert pointers(caller.post("/suspensions", asked)) == {"If-Match"}


def test_an_agents_schema_counts_beside_that_of_the_workflows_tool(agent: Agent, reviewer: User) -> None:
    # C25: a whole amount of at most 1000; what is invalid names its field, and the card stays pending
    schema = {"type": "object", "properties": {"amount": {"type": "integer", "maximum": 1000}}}
    asked = suspension(args={"order": "A-7", "amount": 100}, args_schema=schema)
    asked["resume"] = {"mode": "workflow", "workflow": "refund-agent", "phase": "act"}
    answer = as_agent(agent).post("/suspensions", asked)
    assert answer.status_code == 201, answer.content
    approval = answer.json()["approvals"][0]
    for amount in ("abc", 12.5, 5000):
        vote = {"type": "edit", "review": approval["review"], "args": {"order": "A-7", "amount": amount}}
        refused = as_person(reviewer).post(f"/approvals/{approval['id']}/votes", vote)
        assert refused.status_code == 400
        assert any(pointer.endswith("/amount") for pointer in pointers(refused)), refused.content
    vote = {"type": "edit", "review": approval["review"], "args": {"order": "A-7", "amount": 50}}
    accepted = as_person(reviewer).post(f"/approvals/{approval['id']}/votes", vote)
    assert accepted.status_code in (200, 201), accepted.content
    assert as_agent(agent).get(f"/approvals/{approval['id']}").json()["args"] == {"order": "A-7", "amount": 50}
