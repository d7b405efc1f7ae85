"""Speaking to the API as an agent or as a person, through Django's test client."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from runs.models import Agent
from runs.services.agents import EVERYTHING, issue_key
from runs.services.tokens import make_token
from tests.support.pages import browser

API = "/api/v1"
PASSWORD = "correct horse battery"


class Caller:
    """Somebody with an Authorization header. Bodies are JSON values, or bytes as they are to be sent."""

    def __init__(self, authorization: str | None, client: Client | None = None) -> None:
        self.authorization = authorization
        self.client = client or Client(headers={"Authorization": authorization} if authorization else None)

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.client.get(path if path.startswith("http") else API + path, headers=_named(headers))

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        return self.client.post(
            API + path, data, content_type=headers.pop("content_type", "application/json"), headers=_named(headers)
        )


def as_agent(agent: Agent, scopes: Sequence[str] = EVERYTHING) -> Caller:
    return Caller(f"Bearer {issue_key(agent=agent, scopes=scopes).text}")


def as_person(user: User, password: str = PASSWORD) -> Caller:
    return Caller("Basic " + base64.b64encode(f"{user.username}:{password}".encode()).decode())


def with_token(user: User, *, may_vote: bool = True) -> Caller:
    """With a personal token of theirs."""
    issued = make_token(person=user, name="script", lasts=timedelta(days=1), may_vote=may_vote)
    return Caller(f"Bearer {issued.text}")


def in_browser(user: User) -> Caller:
    """With a session, and without any CSRF token."""
    return Caller(None, browser(user, enforce_csrf_checks=True))


def suspension(*, args: Any = None, **changes: Any) -> dict[str, Any]:
    """A request that parks a run at one approval; `changes` replace fields of the approval."""
    approval = {
        "key": "call_1",
        "tool": "refund",
        "args": {"order": "A-7"} if args is None else args,
        "title": "Refund",
    }
    return {
        "run": {"external_id": f"order-{uuid4()}", "title": "Refund agent"},
        "snapshot": {"schema": "refund-agent/1", "state": {"order": "A-7"}, "history": [{"role": "user"}]},
        "approvals": [{**approval, **changes}],
        "resume": {"mode": "poll"},
    }


def pointers(response: HttpResponse) -> set[str]:
    """Where a problem says that something is wrong."""
    return {error.get("pointer", error.get("parameter")) for error in response.json()["errors"]}


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
