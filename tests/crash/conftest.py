from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.harness import HASTY_SECONDS, Forks, Receiver, end


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    end(receiver.process)


@pytest.fixture(scope="module")
def forks(receiver: Receiver, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Workers whose lease outlasts a busy machine, and not a test that moves the clock."""
    forks = Forks(receiver, tmp_path_factory.mktemp("forks") / "workers.log")
    yield forks
    forks.close()


@pytest.fixture(scope="module")
def hasty(receiver: Receiver, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Workers with so short a lease that a test can wait for its end by their own clock."""
    forks = Forks(receiver, tmp_path_factory.mktemp("hasty") / "workers.log", lease_seconds=HASTY_SECONDS)
    yield forks
    forks.close()
