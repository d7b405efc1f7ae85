"""`GET /api/v1/approvals/ID?wait=`: awake at once, without a thread, and never longer than the server lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection

from runs.models import Agent, AgentKey
from runs.services.agents import issue_key
from tests.approvals.scenes import cast, opened
from tests.support.waiting import until
from tests.support.web import Reply, Web

WAITERS = 100


@pytest.fixture
def key(agent: Agent) -> str:
    return f"Bearer {issue_key(agent=agent).text}"


def poll(web: Web, approval: Any, key: str, wait: str) -> Reply:
    return web.ask("GET", f"/api/v1/approvals/{approval}?wait={wait}", Authorization=key)


def test_a_hundred_waiters_wake_at_the_decision_and_cost_no_threads(
    web: Web, agent: Agent, reviewer: User, key: str
) -> None:
    approval = opened(agent)
    with ThreadPoolExecutor(WAITERS) as threads:
        waiting = [threads.submit(poll, web, approval.pk, key, "30") for _ in range(WAITERS)]
        until(lambda: _established(web) >= WAITERS, what="a hundred open requests")
        assert web.ask("GET", "/api/v1/runs", Authorization=key).status == 200
        assert web.threads() < 40
        decided = time.monotonic()
        cast(approval, reviewer)
        replies = [each.result() for each in waiting]
    assert {(reply.status, reply.json()["status"]) for reply in replies} == {(200, "approved")}
    assert time.monotonic() - decided < 20


def test_what_stays_undecided_is_pending_at_the_end(web: Web, agent: Agent, key: str) -> None:
    started = time.monotonic()
    reply = poll(web, opened(agent).pk, key, "1")
    assert (reply.status, reply.json()["status"]) == (200, "pending")
    assert 1 <= time.monotonic() - started < 20


def test_what_is_decided_already_needs_no_waiting(web: Web, agent: Agent, reviewer: User, key: str) -> None:
    approval = opened(agent)
    cast(approval, reviewer, "reject")
    assert poll(web, approval.pk, key, "30").json()["status"] == "rejected"


@pytest.mark.parametrize(
    ("wait", "status"), [("61", 400), ("-1", 400), ("soon", 400), ("1.5", 400), ("0", 200), ("²", 400)]
)
def test_a_wait_has_limits(web: Web, agent: Agent, key: str, wait: str, status: int) -> None:
    path = f"/api/v1/approvals/{opened(agent).pk}?wait={wait}".replace("²", "%C2%B2")
    assert web.ask("GET", path, Authorization=key).status == status


def test_refusals_do_not_wait(web: Web, agent: Agent, key: str) -> None:
    started = time.monotonic()
    assert poll(web, uuid4(), key, "30").status == 404
    assert poll(web, opened(agent).pk, "Bearer x", "30").status == 401
    assert time.monotonic() - started < 20


def test_stopping_the_server_answers_those_who_wait(start_web: Callable[..., Web], agent: Agent, key: str) -> None:
    web = start_web()
    approval = opened(agent)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(poll, web, approval.pk, key, "60")
        # The request is accepted before it is read; who asks is noted once it is.
        until(lambda: AgentKey.objects.filter(last_used_at__isnull=False).exists(), what="a request that is read")
        web.signal(15)
        assert waiting.result(60).json()["status"] == "pending"
    web.wait()


def test_a_lost_connection_to_the_database_loses_no_news(web: Web, agent: Agent, reviewer: User, key: str) -> None:
    approval = opened(agent)
    with ThreadPoolExecutor(1) as threads:
        before = _established(web)
        waiting = threads.submit(poll, web, approval.pk, key, "30")
        until(lambda: _established(web) > before, what="an open request")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN %'"
            )
            assert cursor.fetchone()[0] >= 1  # other tests' web processes listen, too
        cast(approval, reviewer)
        started = time.monotonic()
        assert waiting.result().json()["status"] == "approved"
        assert time.monotonic() - started < 20


def _established(web: Web) -> int:
    """Connections to the web process: state 01 in the kernel's table."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return sum(row[1].endswith(f":{web.port:04X}") and row[3] == "01" for row in rows)
