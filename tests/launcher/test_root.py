"""As root, who may not run PostgreSQL: whose files are whose, and that nobody's permissions change."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermata.embedded.folders import FOR_ROOT
from fermata.embedded.instance import Instance
from fermata.embedded.postgres import data_folder
from tests.launcher.running import Start, new_home, query, remove_home

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def closed() -> Iterator[Instance]:
    """A home that nobody but root can enter, as /root usually is."""
    closed = new_home(parent_mode=0o700)
    yield closed
    remove_home(closed)


def permissions(folder: Path) -> list[int]:
    return [stat.S_IMODE(parent.stat().st_mode) for parent in folder.parents]


def test_the_data_is_an_unprivileged_accounts(instance: Instance, start: Start) -> None:
    start(instance).ready()
    assert data_folder(instance).stat().st_uid != 0
    assert stat.S_IMODE(data_folder(instance).stat().st_mode) == 0o700


def test_a_closed_home_stays_closed_and_has_its_data_elsewhere(closed: Instance, start: Start) -> None:
    before = permissions(closed.home)
    running = start(closed).ready()
    query(closed, "create table kept as select 7 as number")
    assert permissions(closed.home) == before
    assert closed.servers.parent == FOR_ROOT
    running.stop()
    closed.home.parent.chmod(0o755)  # which must not make it start with an empty database
    start(closed).ready()
    assert query(closed, "select number from kept") == "7"


def test_an_open_home_has_its_data_inside(fresh: Instance, start: Start) -> None:
    start(fresh).ready()
    assert data_folder(fresh).is_relative_to(fresh.home)
