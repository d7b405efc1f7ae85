"""`/readyz` names what is wrong and answers within a second, whatever hangs; an outage is a 503 and heals by itself."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from runs.models import Agent
from runs.services.agents import issue_key
from runs.services.beats import note_alive
from tests.support.processes import environment
from tests.support.proxy import Proxy
from tests.support.waiting import until
from tests.support.web import Web
from tests.support.workers import WorkerFactory


def through(url: str, proxy: Proxy) -> str:
    """The same service, through the proxy."""
    parts = urlsplit(url)
    user = f"{parts.username or ''}:{parts.password or ''}@" if parts.username else ""
    return urlunsplit(parts._replace(netloc=f"{user}127.0.0.1:{proxy.port}"))


@pytest.fixture
def database() -> Iterator[Proxy]:
    settings = connection.settings_dict
    proxy = Proxy(settings["HOST"] or "127.0.0.1", int(settings["PORT"] or 5432))
    yield proxy
    proxy.shut()


def test_livez_needs_nothing(web: Web) -> None:
    assert (web.ask("GET", "/livez").status, web.ask("HEAD", "/livez").status) == (200, 200)


def test_readyz_names_every_part(web: Web) -> None:
    nobody_works = {"database": "ok", "broker": "ok", "worker": "never seen", "beat": "never seen"}
    until(lambda: web.ask("GET", "/readyz").json() == nobody_works, what="an answer about every part")
    reply = web.ask("GET", "/readyz")
    assert reply.status == 503
    assert "no-store" in reply.headers["cache-control"]


def test_readyz_is_200_when_all_parts_are_there(web: Web) -> None:
    for name in ("worker", "beat"):
        note_alive(name=name)
    until(lambda: web.ask("GET", "/readyz").status == 200, what="a ready instance")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_service_beat SET at = clock_timestamp() - interval '1 min' WHERE name = 'beat'")
    until(lambda: web.ask("GET", "/readyz").json()["beat"].startswith("silent for 6"), what="that beat is silent")


def test_real_workers_and_beat_are_seen(web: Web, workers: WorkerFactory) -> None:
    workers.start()
    workers.start_sweeper()
    until(lambda: web.ask("GET", "/readyz").status == 200, what="a ready instance")


def test_a_sweeper_alone_is_no_worker(web: Web, workers: WorkerFactory) -> None:
    workers.start(queues="sweeper")
    until(lambda: web.ask("GET", "/readyz").json()["worker"] == "never seen", what="an answer about workers")


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_hangs_holds_no_answer_up(start_web: Callable[..., Web], scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        web = start_web(CELERY_BROKER_URL=f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/0")
        until(lambda: web.ask("GET", "/readyz").json()["database"] == "ok", what="an answer about the database")
        for _ in range(3):
            started = time.monotonic()
            reply = web.ask("GET", "/readyz")
            assert time.monotonic() - started < 5  # of which the answer may take one: the machine is busy with tests
            assert (reply.status, reply.json()["broker"] != "ok") == (503, True)


def test_a_broker_that_is_not_there_is_named(start_web: Callable[..., Web]) -> None:
    web = start_web(CELERY_BROKER_URL="redis://127.0.0.1:1/0")
    until(
        lambda: web.ask("GET", "/readyz").json()["broker"].startswith("unreachable"),
        what="the broker's absence, by name",
    )


def test_an_outage_of_the_database_is_a_503_and_heals(
    start_web: Callable[..., Web], agent: Agent, database: Proxy
) -> None:
    # celery/celery#2996
    key = f"Bearer {issue_key(agent=agent).text}"
    web = start_web(DATABASE_URL=through(environment()["DATABASE_URL"], database))
    until(lambda: web.ask("GET", "/api/v1/runs", Authorization=key).status == 200, what="an answer before the outage")

    database.shut()
    reply = web.ask("GET", "/api/v1/runs", Authorization=key)
    assert (reply.status, reply.headers["content-type"]) == (503, "application/problem+json")
    assert (reply.json()["code"], reply.headers["retry-after"]) == ("unavailable", "2")
    page = web.ask("GET", "/runs/", Cookie=f"sessionid-{web.port}={'x' * 32}")
    assert page.status == 503
    for answer in (reply, page):
        assert b"Traceback" not in answer.body
        assert b"psycopg" not in answer.body
    with ThreadPoolExecutor(40) as threads:  # more than there are threads to wait for the database
        stuck = [threads.submit(web.ask, "GET", "/api/v1/runs", Authorization=key) for _ in range(40)]
        started = time.monotonic()
        assert web.ask("GET", "/readyz").json()["database"] != "ok"
        assert web.ask("GET", "/livez").status == 200
        assert time.monotonic() - started < 6
        assert {each.result().status for each in stuck} == {503}

    database.open()
    until(lambda: web.ask("GET", "/api/v1/runs", Authorization=key).status == 200, what="an answer after the outage")
