from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from uuid import uuid4

import psycopg
import pytest

from tests.launcher.running import new_home, remove_home
from tests.outages.stack import Stack

SERVER = "postgres://root@127.0.0.1:5432"


@contextmanager
def whole(**variables: str) -> Iterator[Stack]:
    """A whole Fermata in a home of its own."""
    instance = new_home()
    try:
        stack = Stack(instance, **variables)
        try:
            yield stack
        finally:
            with suppress(ProcessLookupError):
                stack.stop()
    finally:
        remove_home(instance)


@pytest.fixture(scope="module")
def fermata() -> Iterator[Stack]:
    """One that lives on from outage to outage, as it would: a start takes longer than most of them."""
    with whole() as stack:
        yield stack


@pytest.fixture
def stack() -> Iterator[Callable[..., Stack]]:
    """`stack(CELERY_BROKER_URL=...)`: one for this test."""
    with ExitStack() as started:
        yield lambda **variables: started.enter_context(whole(**variables))


@pytest.fixture
def database() -> Iterator[str]:
    """A database on this machine's own server."""
    name = f"fermata_services_{uuid4().hex[:12]}"
    with psycopg.connect(f"{SERVER}/postgres", autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"'.encode())
        yield f"{SERVER}/{name}"
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
