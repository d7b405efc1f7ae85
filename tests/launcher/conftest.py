import subprocess
from collections.abc import Iterator

import pytest

from fermata.embedded.instance import Instance
from tests.launcher.running import Running, Start, new_home, remove_home


@pytest.fixture(scope="session")
def seed() -> Iterator[Instance]:
    """An instance that has run once, to be copied: making a database cluster is what takes long at a start."""
    seed = new_home()
    running = Running(seed).ready()
    running.stop()
    yield seed
    remove_home(seed)


@pytest.fixture
def instance(seed: Instance) -> Iterator[Instance]:
    instance = new_home()
    instance.servers_link.mkdir(parents=True)
    instance.servers_link.chmod(seed.servers_link.stat().st_mode)
    # The programs, which are there as root only, are the same files.
    for folder in seed.servers_link.iterdir():
        how = "-al" if folder.name.startswith("postgresql") else "-a"
        subprocess.run(["cp", how, str(folder), str(instance.servers_link / folder.name)], check=True)
    yield instance
    remove_home(instance)


@pytest.fixture
def fresh() -> Iterator[Instance]:
    """An instance that has never been started."""
    fresh = new_home()
    yield fresh
    remove_home(fresh)


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(instance, PORT=...)` starts it with those variables; it ends with the test."""
    started: list[Running] = []

    def start(instance: Instance, *, whole: bool = False, **variables: str) -> Running:
        started.append(Running(instance, whole=whole, **variables))
        return started[-1]

    yield start
    for running in started:
        running.process.terminate()
    for running in started:
        running.process.wait(30)
