"""Services for the time of one command, in a home that goes away with it: what `make test` runs in."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fermata.embedded.instance import Instance
from fermata.launcher.errors import Stopped
from fermata.launcher.household import Household, end_leftovers
from fermata.launcher.lock import Locked, locked
from fermata.launcher.programs import environment
from fermata.launcher.up import embedded_servers

PREFIX = "fermata-services-"


def run_with_services(command: Sequence[str]) -> int:
    """Run `command` with the embedded servers that the environment does not name; return its exit code.

    The servers end with it, and with this process, even if that is killed.
    """
    _clear_away_killed()
    with _temporary_instance() as instance:
        try:
            with Household(instance) as household:
                for server in embedded_servers(instance):
                    household.start_server(server)
                code = household.run(command, environment(instance))
        except Stopped:
            return 128 + signal.SIGINT
    return code if code >= 0 else 128 - code


@contextmanager
def _temporary_instance() -> Iterator[Instance]:
    home = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    home.chmod(0o711)  # PostgreSQL's account must pass through
    instance = Instance(home)
    with locked(instance.lock):
        try:
            yield instance
        finally:
            _remove(instance)


def _clear_away_killed() -> None:
    """Remove homes whose process was killed. A young one without a lock is about to be locked."""
    for home in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        instance = Instance(home.resolve())
        with suppress(Locked, FileNotFoundError):
            found = home.stat()
            if found.st_uid == os.getuid() and time.time() - found.st_mtime > 60:
                with locked(instance.lock):
                    end_leftovers(instance)
                    _remove(instance)


def _remove(instance: Instance) -> None:
    for folder in (instance.sockets, instance.servers, instance.home):
        shutil.rmtree(folder, ignore_errors=True)
