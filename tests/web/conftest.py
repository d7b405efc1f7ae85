from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests.support.web import Web


@pytest.fixture
def start_web(transactional_db: None, tmp_path: Path) -> Iterator[Callable[..., Web]]:
    """Start a web process with these variables in its environment; it ends with the test."""
    started: list[Web] = []

    def start(**extra: str) -> Web:
        started.append(Web(log=tmp_path / f"web-{len(started)}.log", **extra))
        return started[-1].wait_until_ready()

    yield start
    for web in started:
        web.stop()


@pytest.fixture(scope="module")
def running_web(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Web]:
    with django_db_blocker.unblock():
        web = Web(log=tmp_path_factory.mktemp("web") / "web.log")
        web.wait_until_ready().wait_until_it_listens()
    yield web
    web.stop()


@pytest.fixture
def web(running_web: Web, transactional_db: None) -> Web:
    """A web process that the tests of a module share: one that stops it starts its own."""
    return running_web
