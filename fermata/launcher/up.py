"""`make up`: the whole of Fermata in the foreground."""

import errno
import http.client
import os
import resource
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fermata.embedded.instance import Instance
from fermata.embedded.postgres import postgres_server
from fermata.embedded.program import Server
from fermata.embedded.valkey import valkey_server
from fermata.launcher.errors import LauncherError, Stopped
from fermata.launcher.household import Household, end_leftovers
from fermata.launcher.lock import Locked, locked
from fermata.launcher.programs import environment, manage, programs
from fermata.launcher.terminal import say

DESCRIPTORS = 65_536
IMPATIENCE = 30.0  # seconds between two words about what is not ready yet


def up(instance: Instance, port: int) -> None:
    """Run until asked to stop. Raises LauncherError if it cannot start."""
    _raise_descriptor_limit()
    with _home(instance, port):
        with suppress(Stopped), Household(instance) as household:
            end_leftovers(instance)  # they may hold the port
            _check_port(port)
            _make_secret_key(instance)
            for server in embedded_servers(instance):
                household.start_server(server)
            _manage(household, instance, "migrate", "--verbosity", "0")
            household.start(programs(instance, port))  # they take a moment; meanwhile:
            _manage(household, instance, "demo")
            _announce(household, port)
            while True:
                household.tick()
        say("Fermata has stopped.")


def embedded_servers(instance: Instance) -> Iterator[Server]:
    """Describe those servers that the environment does not name; call it under the instance's lock."""
    if not os.environ.get("DATABASE_URL"):
        yield postgres_server(instance)
    if not os.environ.get("CELERY_BROKER_URL"):
        yield valkey_server(instance)


@contextmanager
def _home(instance: Instance, port: int) -> Iterator[None]:
    instance.home.mkdir(parents=True, exist_ok=True)
    try:
        with locked(instance.lock, port=port):
            yield
    except Locked as taken:
        where = ""
        if taken.holder and taken.holder.port:
            where = f" at http://127.0.0.1:{taken.holder.port} (process {taken.holder.pid})"
        raise LauncherError(f"Fermata is already running in {instance.home}{where}; `make stop` stops it.") from None


def _raise_descriptor_limit() -> None:
    # At the usual 256 or 1,024 a busy uvicorn answers with resets and logs nothing.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                reason = f"Port {port} is in use by another program"
            else:
                reason = f"Port {port} cannot be used ({error.strerror})"
            raise LauncherError(f"{reason}; choose another, for example `PORT={port + 1} make up`.") from None


def _make_secret_key(instance: Instance) -> None:
    if not instance.secret_key.exists():
        unfinished = instance.home / "secret-key.new"
        unfinished.touch(mode=0o600)
        unfinished.write_text(secrets.token_urlsafe(50))
        unfinished.rename(instance.secret_key)


def _manage(household: Household, instance: Instance, *arguments: str) -> None:
    if household.run(manage(*arguments), environment(instance)):
        raise LauncherError(f"`manage.py {arguments[0]}` failed; what it said is above.")


def _announce(household: Household, port: int) -> None:
    """Wait until every part says so: a web server that serves does not mean that a worker works."""
    impatient = time.monotonic() + IMPATIENCE
    while True:
        status, body = _readiness(port)
        if status == http.client.OK:
            say(f"Fermata is ready at http://127.0.0.1:{port}")
            return
        if time.monotonic() > impatient:
            impatient += IMPATIENCE
            say(f"Not ready yet: {body}")
        for _ in range(5):
            household.tick()


def _readiness(port: int) -> tuple[int | None, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        return response.status, response.read(2000).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return None, f"the web server does not answer ({error})"
    finally:
        connection.close()
