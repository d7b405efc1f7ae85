"""Runs over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from approvals.models import AuditEvent
from runs.models import Agent, Membership, Run, Team
from tests.support.api import Caller, as_agent, as_person, pointers, suspension

pytestmark = pytest.mark.django_db(transaction=True)

START = {"workflow": "refund-agent", "input": {"order_id": "A-7", "amount": "49.90"}}


@pytest.fixture
def caller(agent: Agent) -> Caller:
    return as_agent(agent)


def parked(caller: Caller) -> str:
    return caller.post("/suspensions", suspension()).json()["run"]["id"]


# --- starting ----------------------------------------------------------------------------------------------------


def test_it_starts_a_run(caller: Caller) -> None:
    answer = caller.post("/runs", START)
    assert answer.status_code == 201
    run = answer.json()
    assert (run["status"], run["workflow"], run["kind"]) == ("queued", "refund-agent", "hosted")
    assert caller.get(run["url"]).json()["id"] == run["id"]
    assert caller.get(f"/runs/{run['id']}/snapshot").json()["seq"] == 0


def test_starting_twice_with_one_key_starts_once(caller: Caller) -> None:
    answers = [caller.post("/runs", START, Idempotency_Key="k") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert [answer.get("Idempotent-Replayed") for answer in answers] == [None, "true"]
    assert Run.objects.count() == 1
    conflict = caller.post("/runs", {**START, "title": "another"}, Idempotency_Key="k")
    assert (conflict.status_code, conflict.json()["code"]) == (409, "idempotency_conflict")


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, {"#/workflow"}),
        ({**START, "workflow": 7}, {"#/workflow"}),
        ({**START, "workflow": None}, {"#/workflow"}),
        ({**START, "input": []}, {"#/input"}),
        ({**START, "input": None}, {"#/input"}),
        ({**START, "titel": "x"}, {"#/titel"}),
        ({**START, "title": "x" * 201}, {"#/title"}),
        ([], {"#"}),
        (None, {"#/workflow"}),
        ("x", {"#"}),
    ],
)
def test_a_wrong_body_names_the_field(caller: Caller, body: object, wrong: set[str]) -> None:
    answer = caller.post("/runs", body)
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert pointers(answer) == wrong
    assert not Run.objects.exists()


def test_an_unknown_workflow_is_named(caller: Caller) -> None:
    answer = caller.post("/runs", {"workflow": "no-such-thing"})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_workflow")
    assert "refund-agent" in answer.json()["known"]


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "é"])
def test_a_key_that_is_none_is_refused(caller: Caller, key: str) -> None:
    answer = caller.post("/runs", START, Idempotency_Key=key)
    assert (answer.status_code, pointers(answer)) == (400, {"Idempotency-Key"})


# --- reading -----------------------------------------------------------------------------------------------------


def test_lists_come_in_pages_newest_first(caller: Caller) -> None:
    started = [caller.post("/runs", START).json()["id"] for _ in range(5)]
    found, path = [], "/runs?limit=2"
    while path:
        page = caller.get(path).json()
        found += [run["id"] for run in page["results"]]
        path = page["next"]
    assert found == started[::-1]


@pytest.mark.parametrize("kind", ["runs", "approvals"])
def test_the_lists_of_several_teams_are_one(caller: Caller, reviewer: User, kind: str) -> None:
    elsewhere = Agent.objects.create(team=Team.objects.create(name="Other"), name="agent")
    Membership.objects.create(user=reviewer, team=elsewhere.team, roles=["reviewer"])
    callers = (caller, as_agent(elsewhere), caller, caller, as_agent(elsewhere))
    made = [each.post("/suspensions", suspension()).json() for each in callers]
    ids = [parked["run"]["id"] if kind == "runs" else parked["approvals"][0]["id"] for parked in made]
    person, found, path = as_person(reviewer), [], f"/{kind}?limit=2"
    while path:
        page = person.get(path).json()
        found += [row["id"] for row in page["results"]]
        path = page["next"]
    assert found == ids[::-1]


def test_lists_can_be_filtered(caller: Caller) -> None:
    run = parked(caller)
    caller.post("/runs", START)
    assert [found["id"] for found in caller.get("/runs?status=suspended").json()["results"]] == [run]
    assert [found["id"] for found in caller.get("/runs?kind=external").json()["results"]] == [run]


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("limit=0", {"limit"}),
        ("limit=x", {"limit"}),
        ("limit=201", {"limit"}),
        ("cursor=x", {"cursor"}),
        ("cursor=%00", {"cursor"}),
        ("status=asleep", {"status"}),
        ("status=queued&status=running", {"status"}),
        ("nonsense=1", {"nonsense"}),
    ],
)
def test_a_wrong_query_names_the_parameter(caller: Caller, query: str, wrong: set[str]) -> None:
    answer = caller.get(f"/runs?{query}")
    assert (answer.status_code, pointers(answer)) == (400, wrong)


def test_a_snapshot_comes_back_as_it_was_posted(caller: Caller) -> None:
    asked = suspension()
    asked["snapshot"] = {
        "schema": "a.b/12",
        "state": {"py/uuid": "not ours", "deep": [[{"x": 1.5}]], "emoji": "👩‍👧 🍸", "none": None, "big": 2**63},
        "history": [{"role": "user", "content": "a\\u0000b"}],
        "position": {"step": 3},
        "pending": [{"id": "call_1"}],
    }
    run = caller.post("/suspensions", asked).json()["run"]
    snapshot = caller.get(f"/runs/{run['id']}/snapshot").json()
    for part in ("state", "history", "position", "pending"):
        assert snapshot[part] == asked["snapshot"][part]
    assert (snapshot["workflow"], snapshot["schema"], snapshot["seq"]) == ("a.b", 12, 0)


def test_a_run_has_checkpoints_and_a_timeline(caller: Caller) -> None:
    run = parked(caller)
    assert [row["seq"] for row in caller.get(f"/runs/{run}/checkpoints").json()["results"]] == [0]
    page = caller.get(f"/runs/{run}/timeline?limit=2").json()
    kinds = [entry["kind"] for entry in page["results"]]
    kinds += [entry["kind"] for entry in caller.get(page["next"]).json()["results"]]
    assert sorted(kinds) == ["checkpoint", "gate", "run"]


def test_a_checkpoint_that_is_not_there_is_404(caller: Caller) -> None:
    assert caller.get(f"/runs/{parked(caller)}/snapshot?seq=7").status_code == 404


@pytest.mark.parametrize("part", ["", "/snapshot", "/checkpoints", "/timeline"])
def test_what_is_not_theirs_does_not_exist(caller: Caller, team: Team, part: str) -> None:
    run = parked(caller)
    others = as_agent(Agent.objects.create(team=team, name="other"))
    stranger = as_person(User.objects.create_user("stranger", password="correct horse battery"))
    for somebody in (others, stranger):
        unknown, hidden = somebody.get(f"/runs/{uuid4()}{part}"), somebody.get(f"/runs/{run}{part}")
        assert (unknown.status_code, hidden.status_code) == (404, 404)
        assert somebody.get("/runs").json()["results"] == []


def test_an_administrator_sees_no_content(caller: Caller, person: Callable[..., User]) -> None:
    run = parked(caller)
    admin = as_person(person("admin", "admin"))
    assert "result" not in admin.get(f"/runs/{run}").json()
    assert admin.get(f"/runs/{run}/snapshot").status_code == 404
    assert "result" in as_person(person("ann", "auditor")).get(f"/runs/{run}").json()


def test_a_superuser_sees_nothing_by_being_one(caller: Caller) -> None:
    run = parked(caller)
    root = as_person(User.objects.create_superuser("root", password="correct horse battery"))
    assert root.get(f"/runs/{run}").status_code == 404


# --- operating ---------------------------------------------------------------------------------------------------


def test_an_agent_cancels_its_run_once(caller: Caller) -> None:
    run = parked(caller)
    for _ in range(2):
        answer = caller.post(f"/runs/{run}/cancel", {"reason": "changed my mind"})
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    assert caller.get(f"/approvals?run={run}&status=pending").json()["results"] == []  # nimbalyst/nimbalyst#1183


def test_only_operators_cancel_as_people(caller: Caller, person: Callable[..., User]) -> None:
    run = parked(caller)
    answer = as_person(person("rita", "reviewer")).post(f"/runs/{run}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_an_operator")
    assert as_person(person("olga", "operator")).post(f"/runs/{run}/cancel").status_code == 200


def test_the_wrong_state_is_409(caller: Caller) -> None:
    run = parked(caller)
    caller.post(f"/runs/{run}/cancel")
    answer = caller.post(f"/runs/{run}/retry")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
    assert answer.json()["current_status"] == "cancelled"


def test_a_fork_is_made_once_for_a_key(caller: Caller, person: Callable[..., User]) -> None:
    run = caller.post("/runs", START).json()["id"]
    forks = [caller.post(f"/runs/{run}/fork", {"checkpoint": 0}, Idempotency_Key="f") for _ in range(2)]
    assert [fork.status_code for fork in forks] == [201, 201]
    assert forks[0].json()["id"] == forks[1].json()["id"]
    assert forks[0].json()["forked_from"] == {"id": run, "checkpoint": 0}
    assert caller.post(f"/runs/{run}/fork", {"checkpoint": 9}).status_code == 404
    assert pointers(caller.post(f"/runs/{run}/fork", {"checkpoint": True})) == {"#/checkpoint"}


def test_a_run_whose_code_lives_elsewhere_is_not_forked_here(caller: Caller) -> None:
    run_id = caller.post("/suspensions", suspension()).json()["run"]["id"]
    response = caller.post(f"/runs/{run_id}/fork", {"checkpoint": 0})
    assert (response.status_code, response.json()["code"]) == (409, "wrong_state")
    assert "its code lives elsewhere" in response.json()["detail"]


def test_an_event_is_told_once(caller: Caller) -> None:
    run = caller.post("/runs", START).json()["id"]
    for _ in range(2):
        assert caller.post(f"/runs/{run}/events/paid", {"payload": {"amount": 49.9}}).status_code == 200
    answer = caller.post(f"/runs/{run}/events/paid", {"payload": {"amount": 50}})
    assert (answer.status_code, answer.json()["code"]) == (409, "event_conflict")


def test_membership_counts_at_once(caller: Caller, person: Callable[..., User]) -> None:
    run, user = parked(caller), person("olga", "operator")
    Membership.objects.filter(user=user).delete()
    assert as_person(user).post(f"/runs/{run}/cancel").status_code == 404


def test_attempts_at_what_is_not_theirs_are_on_record(caller: Caller, person: Callable[..., User]) -> None:
    run = parked(caller)
    stranger = User.objects.create_user("stranger", password="correct horse battery")
    reviewer = person("rita", "reviewer")
    as_person(stranger).get(f"/runs/{run}/snapshot")
    as_person(stranger).get(f"/runs/{uuid4()}/snapshot")
    as_person(reviewer).post(f"/runs/{run}/cancel")
    found = AuditEvent.objects.filter(type="attempt.refused").order_by("id").values_list("chain", "actor")
    assert list(found) == [(f"run:{run}", f"person:{stranger.pk}"), (f"run:{run}", f"person:{reviewer.pk}")]
