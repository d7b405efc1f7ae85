from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.harness import Forks, Receiver, end


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    end(receiver.process)


@pytest.fixture(scope="module")
def forks(receiver: Receiver, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    forks = Forks(receiver, tmp_path_factory.mktemp("forks") / "workers.log")
    yield forks
    forks.close()
