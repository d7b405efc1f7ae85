"""Agents' keys: who gets in, and how far."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.middleware.csrf import _get_new_csrf_string
from django.test import override_settings
from django.utils.timezone import now

from approvals.models import AuditBody, AuditEvent
from runs.models import Agent, AgentKey
from runs.services.agents import UnknownScope, issue_key, revoke_key, rotate_key
from tests.support.api import Caller, as_agent, as_person, in_browser, pointers, suspension

pytestmark = pytest.mark.django_db(transaction=True)


def status(key: str) -> int:
    return Caller(f"Bearer {key}").get("/runs").status_code


def test_a_key_works(agent: Agent) -> None:
    assert status(issue_key(agent=agent).text) == 200


def test_only_its_digest_is_kept(agent: Agent) -> None:
    issued = issue_key(agent=agent)
    row = AgentKey.objects.values().get()
    assert issued.text.removeprefix(f"fmt_{row['prefix']}_") not in str(row)


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer x", "Bearer fmt_aaaaaaaaaaaa_" + "a" * 43, "Token x", "Bearer \xff", "Basic !!!"],
)
def test_anything_else_is_401(authorization: str | None) -> None:
    answer = Caller(authorization).get("/runs")
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_another_secret_with_the_right_prefix_is_401(agent: Agent) -> None:
    assert status(issue_key(agent=agent).text[:-1] + "~") == 401
    assert status(issue_key(agent=agent).text[:-4] + "aaaa") == 401


def test_a_revoked_key_stops_at_once(agent: Agent) -> None:
    issued = issue_key(agent=agent)
    revoke_key(key=issued.key)
    assert status(issued.text) == 401


def test_a_key_expires(agent: Agent, move_clock: Callable[[timedelta], None]) -> None:
    issued = issue_key(agent=agent, expires_at=now() + timedelta(hours=1))
    assert status(issued.text) == 200
    move_clock(timedelta(hours=2))
    assert status(issued.text) == 401


def test_rotating_gives_the_old_key_time(agent: Agent, move_clock: Callable[[timedelta], None]) -> None:
    old = issue_key(agent=agent, scopes=["runs:read"])
    new = rotate_key(key=old.key, retire_at=now() + timedelta(hours=1))
    assert (status(old.text), status(new.text)) == (200, 200)
    move_clock(timedelta(hours=2))
    assert (status(old.text), status(new.text)) == (401, 200)
    assert new.key.scopes == ["runs:read"]


def test_an_inactive_agent_has_no_keys(agent: Agent) -> None:
    issued = issue_key(agent=agent)
    Agent.objects.filter(pk=agent.pk).update(is_active=False)
    assert status(issued.text) == 401


def test_scopes_hold(agent: Agent) -> None:
    reader = as_agent(agent, ["runs:read"])
    assert reader.get("/runs").status_code == 200
    for answer in (reader.post("/runs", {"workflow": "x"}), reader.get("/approvals"), reader.post("/suspensions", {})):
        assert answer.status_code == 403
        assert answer.json()["code"] == "scope_missing"


def test_entering_a_workflow_needs_its_scope(agent: Agent) -> None:
    asked = suspension()
    asked["resume"] = {"mode": "workflow", "workflow": "refund-agent", "phase": "act"}
    answer = as_agent(agent, ["approvals:write", "workflow:other"]).post("/suspensions", asked)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
    assert "workflow:refund-agent" in answer.json()["detail"]


def test_an_unknown_scope_cannot_be_given(agent: Agent) -> None:
    with pytest.raises(UnknownScope):
        issue_key(agent=agent, scopes=["runs:everything"])


def test_use_is_noted_once_a_minute(agent: Agent) -> None:
    issued = issue_key(agent=agent)
    assert status(issued.text) == 200
    first = AgentKey.objects.get().last_used_at
    assert first is not None
    assert status(issued.text) == 200
    assert AgentKey.objects.get().last_used_at == first


# --- people ------------------------------------------------------------------------------------------------------


def test_a_person_reads_with_basic(reviewer: User) -> None:
    assert as_person(reviewer).get("/approvals").status_code == 200
    assert as_person(reviewer, "wrong").get("/approvals").status_code == 401


@override_settings(FERMATA_BASIC_VOTES=False)
def test_basic_can_be_switched_off(reviewer: User) -> None:
    assert as_person(reviewer).get("/approvals").status_code == 401


def test_basic_is_refused_over_plain_http_from_elsewhere(reviewer: User) -> None:
    caller = as_person(reviewer)
    assert caller.client.get("/api/v1/approvals", REMOTE_ADDR="192.0.2.7").status_code == 401
    assert caller.client.get("/api/v1/approvals", REMOTE_ADDR="192.0.2.7", secure=True).status_code == 200


def test_a_session_writes_only_with_its_csrf_token(reviewer: User) -> None:
    caller, nowhere = in_browser(reviewer), f"/approvals/{uuid4()}/cancel"
    assert caller.get("/approvals").status_code == 200
    assert caller.post(nowhere).status_code == 403
    token = _get_new_csrf_string()
    caller.client.cookies[settings.CSRF_COOKIE_NAME] = token
    assert caller.post(nowhere, X_CSRFToken=token).status_code == 404


def test_people_cannot_do_what_is_for_agents(reviewer: User) -> None:
    assert as_person(reviewer).post("/suspensions", suspension()).status_code == 403
    assert pointers(as_person(reviewer).get("/runs?nonsense=1")) == {"nonsense"}


def test_every_change_of_a_key_is_on_record(agent: Agent, reviewer: User) -> None:
    issued = issue_key(agent=agent, created_by=reviewer)
    rotate_key(key=issued.key, retire_at=now() + timedelta(hours=1))
    for _ in range(2):
        revoke_key(key=issued.key, by=reviewer)
    person = f"person:{reviewer.pk}"
    assert list(
        AuditEvent.objects.filter(chain=f"team:{agent.team_id}").order_by("id").values_list("type", "actor")
    ) == [
        ("key.created", person),
        ("key.created", "system"),
        ("key.revoked", "system"),
        ("key.revoked", person),
    ]
    secret = issued.text.split("_", 2)[2]
    assert not AuditBody.objects.filter(body__contains=secret).exists()
