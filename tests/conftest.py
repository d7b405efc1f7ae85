"""What all tests share: a database whose clock can be moved, its clean-up, people, agents, and real workers."""

from __future__ import annotations

import os
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection
from django.test import TransactionTestCase, override_settings
from hypothesis import settings as hypothesis_settings
from pytest_django.plugin import DjangoDbBlocker

from fermata.celery import app
from runs.clock import database_now
from runs.dispatch import breaker
from runs.engine.connection import engine_connection
from runs.models import Agent, Membership, Team
from tests.support.cleaning import Cleaner
from tests.support.processes import BROKER_TIMEOUT
from tests.support.struck import table
from tests.support.workers import WorkerFactory

AUDIT_TRAIL = {"FERMATA_AUDIT_KEY": b64encode(bytes(32)).decode(), "FERMATA_AUDIT_ANCHOR": ""}
MOVABLE_CLOCK = """
CREATE TABLE IF NOT EXISTS test_clock (ahead interval NOT NULL);
INSERT INTO test_clock SELECT interval '0' WHERE NOT EXISTS (SELECT 1 FROM test_clock);
CREATE OR REPLACE FUNCTION fermata_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT clock_timestamp() + (SELECT ahead FROM test_clock)';
"""
# The heartbeat's thread keeps a connection, and a database in use cannot be dropped.
END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""

# A busy machine is no failure, and the same commit passes or fails each time: FERMATA_EXPLORE=1 draws new examples.
hypothesis_settings.register_profile("fermata", deadline=None, derandomize="FERMATA_EXPLORE" not in os.environ)
hypothesis_settings.load_profile("fermata")


def own_broker(url: str) -> str:
    """This test process's own part of the broker: a Redis database of its own (RabbitMQ tests name their vhost)."""
    number = 10 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    parts = urlsplit(url)
    if parts.scheme == "redis+socket":
        return f"{url.partition('?')[0]}?virtual_host={number}"  # urlunsplit drops an empty host's slashes
    if parts.scheme == "redis":
        return urlunsplit(parts._replace(path=f"/{number}"))
    return url


SERVICES = {"PostgreSQL": 5432, "Redis": 6379, "RabbitMQ": 5672}


def missing_services() -> list[str]:
    """Those of this machine's services that nobody answers for."""
    missing = []
    for name, port in SERVICES.items():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=2).close()
        except OSError:
            missing.append(name)
    return missing


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What the crash tests interrupted, also when they ran in processes of their own."""
    for line in table(terminalreporter.stats.get("passed", [])):
        terminalreporter.write_line(line)
    passed = [value for report in terminalreporter.stats.get("passed", []) for value in report.user_properties]
    if pairs := sum(int(value) for name, value in passed if name == "raced"):
        terminalreporter.write_line(f"pairs of events raced in two processes: {pairs}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("services") and (missing := missing_services()):
        reason = f"not on this machine: {', '.join(missing)}"
        if os.environ.get("FERMATA_REQUIRE_SERVICES"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def broker() -> str:
    app.conf.broker_url = own_broker(app.conf.broker_url)
    if app.conf.broker_url.startswith("redis"):
        patience = {"socket_timeout": BROKER_TIMEOUT, "socket_connect_timeout": BROKER_TIMEOUT}
        app.conf.broker_transport_options = {**app.conf.broker_transport_options, **patience}
    return str(app.conf.broker_url)


@pytest.fixture(scope="session", autouse=True)
def audit_trail() -> None:
    """The key and the anchor of the instance that may run here are not for tests, nor for processes that they start."""
    os.environ.update(AUDIT_TRAIL)
    for name, value in AUDIT_TRAIL.items():
        setattr(settings, name, value)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Cleaner]:
    """The test database, with a clock that a row moves for every process, and a clean-up that keeps the seeds; gives
    the clean-up."""
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            cursor.execute(MOVABLE_CLOCK)
        cleaner = Cleaner()

    def teardown(case: TransactionTestCase) -> None:
        engine_connection().close()
        cleaner.clean()

    TransactionTestCase._fixture_teardown = teardown  # type: ignore[method-assign]
    yield cleaner
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(END_OTHERS)


@pytest.fixture
def move_clock(transactional_db: None) -> Iterator[Callable[[timedelta], None]]:
    """Move the database's clock ahead, for this test."""

    def move(by: timedelta) -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE test_clock SET ahead = ahead + %s", (by,))

    yield move
    with connection.cursor() as cursor:
        cursor.execute("UPDATE test_clock SET ahead = interval '0'")


@pytest.fixture
def start_of_next(move_clock: Callable[[timedelta], None]) -> Callable[[timedelta], None]:
    """Move the database's clock to the start of the next hour, quarter or other span that something is counted by."""

    def move(span: timedelta) -> None:
        seconds = span.total_seconds()
        move_clock(timedelta(seconds=seconds - database_now().timestamp() % seconds))

    return move


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> Iterator[None]:
    """Hashing is slow on purpose; nothing here tests it."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.get(name="Default")


@pytest.fixture
def agent(team: Team) -> Agent:
    return Agent.objects.create(team=team, name="agent")


@pytest.fixture(scope="session")
def hashed_password() -> str:
    """Of "correct horse battery". Hashing it is slow on purpose, so it is done once."""
    return make_password("correct horse battery")


@pytest.fixture
def person(team: Team, hashed_password: str) -> Callable[..., User]:
    """Make a person of the team: `person("ada", "reviewer")`."""

    def make(name: str, *roles: str) -> User:
        user = User.objects.create(username=name, password=hashed_password)
        Membership.objects.create(user=user, team=team, roles=list(roles) or ["reviewer"])
        return user

    return make


@pytest.fixture
def reviewer(person: Callable[..., User]) -> User:
    return person("reviewer")


@pytest.fixture
def workers(transactional_db: None, broker: str, tmp_path: Path) -> Iterator[WorkerFactory]:
    """Real Celery workers on the test database, each in a process of its own. All of them end with the test."""
    app.control.purge()
    breaker.reset()
    factory = WorkerFactory(tmp_path)
    yield factory
    factory.stop_all()
