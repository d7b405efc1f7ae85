from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.launcher.running import new_home, remove_home
from tests.outages.stack import Stack


@pytest.fixture
def stack() -> Iterator[Callable[..., Stack]]:
    """`stack(CELERY_BROKER_URL=...)`: a whole Fermata in a home of its own, ended with the test."""
    instance = new_home()
    started: list[Stack] = []

    def start(**variables: str) -> Stack:
        started.append(Stack(instance, **variables))
        return started[-1]

    yield start
    for one in started:
        with suppress(ProcessLookupError):
            one.stop()
    remove_home(instance)
