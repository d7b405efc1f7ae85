"""The same Fermata on this machine's own PostgreSQL and brokers, instead of embedded ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fermata.embedded.postgres import data_folder as postgres_folder
from fermata.embedded.valkey import data_folder as valkey_folder
from tests.outages.stack import Stack, assert_each_refunded_once

pytestmark = [pytest.mark.services, pytest.mark.timeout(240), pytest.mark.xdist_group("outages")]


def test_runs_are_decided_and_resumed_on_the_machines_services(stack: Callable[..., Stack], database: str) -> None:
    """The machine's Redis; its kind of RabbitMQ is used by the outage test, which has to stop its own."""
    fermata = stack(DATABASE_URL=database, CELERY_BROKER_URL="redis://127.0.0.1:6379/9")
    runs = fermata.start_refunds(5)
    for approval in fermata.pending(runs):
        fermata.approve(approval)
    fermata.wait_for_completion(runs)
    assert_each_refunded_once(fermata)
    assert not postgres_folder(fermata.instance).exists()
    assert not valkey_folder(fermata.instance).exists()
