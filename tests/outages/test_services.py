"""The same Fermata on this machine's own PostgreSQL and brokers, instead of embedded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import psycopg
import pytest

from fermata.embedded.postgres import data_folder as postgres_folder
from fermata.embedded.valkey import data_folder as valkey_folder
from tests.outages.stack import Stack, assert_each_refunded_once

pytestmark = [pytest.mark.services, pytest.mark.timeout(240), pytest.mark.xdist_group("outages")]

SERVER = "postgres://root@127.0.0.1:5432"


@pytest.fixture
def database() -> Iterator[str]:
    name = f"fermata_services_{uuid4().hex[:12]}"
    with psycopg.connect(f"{SERVER}/postgres", autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"'.encode())
        yield f"{SERVER}/{name}"
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@pytest.mark.parametrize("broker", ["amqp://guest:guest@127.0.0.1:5672//", "redis://127.0.0.1:6379/9"])
def test_runs_are_decided_and_resumed_on_the_machines_services(
    stack: Callable[..., Stack], database: str, broker: str
) -> None:
    fermata = stack(DATABASE_URL=database, CELERY_BROKER_URL=broker)
    runs = fermata.start_refunds(5)
    for approval in fermata.pending(runs):
        fermata.approve(approval)
    fermata.wait_for_completion(runs)
    assert_each_refunded_once(fermata, 5)
    assert not postgres_folder(fermata.instance).exists()
    assert not valkey_folder(fermata.instance).exists()
