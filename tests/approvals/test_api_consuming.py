"""External agents going on: the claim, the grant, its outcome, and the end of the run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from runs.models import Agent
from tests.support.api import Caller, as_agent, as_person, pointers, suspension

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(agent: Agent) -> Caller:
    return as_agent(agent)


@pytest.fixture
def decided(caller: Caller, reviewer: User) -> Callable[..., dict[str, Any]]:
    """An approval of a new run that a person decided about."""

    def decide(verdict: str = "approve") -> dict[str, Any]:
        approval = caller.post("/suspensions", suspension()).json()["approvals"][0]
        verdicts = {"type": verdict, "review": approval["review"]}
        return as_person(reviewer).post(f"/approvals/{approval['id']}/votes", verdicts).json()

    return decide


def path(approval: dict[str, Any], what: str) -> str:
    return f"/approvals/{approval['id']}/{what}"


def test_a_grant_is_consumed_once(caller: Caller, decided: Callable[..., dict[str, Any]]) -> None:
    approval = decided()
    first, again, other = (
        caller.post(path(approval, "consume"), {}, Idempotency_Key=key) for key in ("mine", "mine", "other")
    )
    assert (first.status_code, first.json()["replayed"]) == (200, False)
    assert (first.json()["args"], first.json()["action"]) == ({"order": "A-7"}, approval["action"])
    assert (again.status_code, again.json()["replayed"]) == (200, True)
    assert (other.status_code, other.json()["code"]) == (409, "already_consumed")


def test_without_a_key_the_first_wins(caller: Caller, decided: Callable[..., dict[str, Any]]) -> None:
    approval = decided()
    assert [caller.post(path(approval, "consume")).status_code for _ in range(2)] == [200, 409]


def test_another_action_is_not_granted(caller: Caller, decided: Callable[..., dict[str, Any]]) -> None:
    # extra-org/extra#139
    answer = caller.post(path(decided(), "consume"), {"action": "0" * 64})
    assert (answer.status_code, answer.json()["code"]) == (409, "digest_mismatch")


@pytest.mark.parametrize("verdict", ["reject", None])
def test_nothing_is_granted_without_an_approval(
    caller: Caller, decided: Callable[..., dict[str, Any]], verdict: str | None
) -> None:
    approval = decided(verdict) if verdict else caller.post("/suspensions", suspension()).json()["approvals"][0]
    answer = caller.post(path(approval, "consume"))
    assert (answer.status_code, answer.json()["code"]) == (409, "not_approved")


def test_a_grant_expires(
    caller: Caller, decided: Callable[..., dict[str, Any]], move_clock: Callable[[timedelta], None]
) -> None:
    approval = decided()
    move_clock(timedelta(days=3660))
    answer = caller.post(path(approval, "consume"))
    assert (answer.status_code, answer.json()["code"]) == (409, "grant_expired")


def test_an_outcome_is_reported_once(caller: Caller, decided: Callable[..., dict[str, Any]]) -> None:
    approval = decided()
    outcome = {"status": "succeeded", "result": {"id": 1.50}}
    assert caller.post(path(approval, "outcome"), outcome).json()["code"] == "not_consumed"
    caller.post(path(approval, "consume"), {}, Idempotency_Key="mine")
    for _ in range(2):
        assert caller.post(path(approval, "outcome"), outcome).json()["grant"]["status"] == "succeeded"
    answer = caller.post(path(approval, "outcome"), {"status": "failed"})
    assert (answer.status_code, answer.json()["code"]) == (409, "outcome_conflict")
    assert pointers(caller.post(path(approval, "outcome"), {"status": "fine"})) == {"#/status"}


# --- claims ------------------------------------------------------------------------------------------------------


def test_two_processes_do_not_both_go_on(
    caller: Caller, decided: Callable[..., dict[str, Any]], move_clock: Callable[[timedelta], None]
) -> None:
    # langchain-ai/langgraph#8796
    approval = decided()
    claim = f"/runs/{approval['run']}/claim"
    first = caller.post(claim).json()["resume_token"]
    refused = caller.post(claim)
    assert (refused.status_code, refused.json()["code"]) == (409, "claimed_elsewhere")
    assert caller.post(claim, {"resume_token": first}).json()["resume_token"] == first
    assert caller.post(path(approval, "consume")).json()["code"] == "claimed_elsewhere"

    move_clock(timedelta(minutes=16))
    second = caller.post(claim).json()["resume_token"]
    assert second != first
    for what in ("consume", "outcome"):
        body = {"resume_token": first, **({"status": "failed"} if what == "outcome" else {})}
        assert caller.post(path(approval, what), body).json()["code"] == "claimed_elsewhere"
    assert caller.post(path(approval, "consume"), {"resume_token": second}).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "99999999999999999999", "-1", "²"])
def test_a_token_that_is_none_claims_nothing(
    caller: Caller, decided: Callable[..., dict[str, Any]], token: str
) -> None:
    assert caller.post(f"/runs/{decided()['run']}/claim", {"resume_token": token}).status_code in (400, 409)


def test_a_sleeping_run_cannot_be_claimed(caller: Caller) -> None:
    run = caller.post("/suspensions", suspension()).json()["run"]
    answer = caller.post(f"/runs/{run['id']}/claim")
    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


def test_a_hosted_run_is_not_its_agents_to_claim(caller: Caller) -> None:
    run = caller.post("/runs", {"workflow": "refund-agent", "input": {"order_id": "A-7", "amount": "1"}}).json()
    assert caller.post(f"/runs/{run['id']}/claim").json()["code"] == "wrong_state"
    assert caller.post(f"/runs/{run['id']}/finish", {"result": 1}).json()["code"] == "wrong_state"


# --- going on, and the end ---------------------------------------------------------------------------------------


def test_the_next_suspension_continues_the_run(caller: Caller, reviewer: User) -> None:
    asked = suspension()
    first = caller.post("/suspensions", asked).json()
    run, approval = first["run"]["id"], first["approvals"][0]
    verdict = {"type": "approve", "review": approval["review"]}
    as_person(reviewer).post(path(approval, "votes"), verdict)
    caller.post(f"/runs/{run}/claim")
    asked["snapshot"]["history"].append({"role": "tool"})
    second = caller.post("/suspensions", asked, If_Match="0")
    assert second.status_code == 201
    assert second.json()["run"] == {**first["run"], "checkpoint": 1}
    assert second.json()["approvals"][0]["id"] != approval["id"]
    assert len(caller.get(f"/runs/{run}/snapshot").json()["history"]) == 2


def test_a_history_is_only_appended_to(caller: Caller, decided: Callable[..., dict[str, Any]]) -> None:
    run = decided()["run"]
    asked = suspension()
    asked["run"] = {"id": run}
    asked["snapshot"]["history"] = [{"role": "somebody else"}]
    answer = caller.post("/suspensions", asked, If_Match="0")
    assert (answer.status_code, pointers(answer)) == (400, {"#/snapshot/history"})


def test_an_agent_says_how_its_run_ended(caller: Caller, decided: Callable[..., dict[str, Any]]) -> None:
    run = decided()["run"]
    for _ in range(2):
        answer = caller.post(f"/runs/{run}/finish", {"result": {"refunded": 49.9}})
        assert (answer.status_code, answer.json()["status"]) == (200, "completed")
        assert answer.json()["result"] == {"refunded": 49.9}
    assert caller.post(f"/runs/{run}/finish", {"error": "no"}).status_code == 409


def test_an_end_voids_what_was_not_used(caller: Caller, decided: Callable[..., dict[str, Any]]) -> None:
    approval = decided()
    answer = caller.post(f"/runs/{approval['run']}/finish", {"error": "gave up"})
    assert (answer.json()["status"], answer.json()["error"]["message"]) == ("failed", "gave up")
    assert caller.post(path(approval, "consume")).json()["code"] == "void"


def test_a_run_ends_in_one_way(caller: Caller, decided: Callable[..., dict[str, Any]]) -> None:
    answer = caller.post(f"/runs/{decided()['run']}/finish", {"result": 1, "error": "x"})
    assert answer.status_code == 400
