"""The embedded PostgreSQL: how it is made, started, and started again after any crash."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fermata.embedded.account import Account, server_account
from fermata.embedded.errors import EmbeddedError
from fermata.embedded.folders import make_folders, own_folder
from fermata.embedded.instance import Instance
from fermata.embedded.leftovers import MARK, end, standing_in
from fermata.embedded.program import Program, Server
from fermata.embedded.wheels import copy_of_postgres, postgres_programs

NAME = "fermata"  # of the role and of the database
INITDB_OPTIONS = ("-A", "trust", "-E", "UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C")


def data_folder(instance: Instance) -> Path:
    return instance.servers / "postgres" / "data"


def end_leftover_postgres(instance: Instance) -> int:
    """End every process of an earlier start, also a busy backend that outlived it. Return their number."""
    # SIGINT is a fast shutdown for the server, and cancels a backend's query so that it sees that the
    # server is gone.
    return end(lambda: standing_in(data_folder(instance)), signal.SIGINT, grace=5)


def postgres_server(instance: Instance) -> Server:
    """Make the folders, and describe the server. Call it under the instance's lock.

    Raises EmbeddedError if this machine cannot run it.
    """
    account = server_account(instance.servers / "postgres")
    make_folders(instance, account)
    own_folder(instance.servers / "postgres", mode=0o700, account=account)
    own_folder(instance.postgres_socket_folder, mode=0o700, account=account)
    programs = copy_of_postgres(instance.servers) if account else postgres_programs()
    data = data_folder(instance)
    sockets = '"' + str(instance.postgres_socket_folder).replace('"', '""') + '"'  # an item of a list
    options = {
        "listen_addresses": "",
        "unix_socket_directories": sockets,
        "unix_socket_permissions": "0700",
        "timezone": "UTC",
        "log_timezone": "UTC",
        "log_checkpoints": "off",
    }
    program = Program(
        name="postgres",
        argv=[
            str(programs / "postgres"),
            *("-D", str(data)),
            *(part for name, value in options.items() for part in ("-c", f"{name}={value}")),
        ],
        env=_environment(),
        account=account,
        folder=Path("/"),
        stop=signal.SIGINT,
        prepare=lambda: _prepare(instance, programs, account),
        socket=instance.postgres_socket_folder / ".s.PGSQL.5432",
        echo=False,
    )
    return Server(program, ready=lambda: _answers(instance), after_start=lambda: _make_database(instance))


def _environment() -> Mapping[str, str]:
    """No variable of the user's (PGPORT, PGOPTIONS, LC_ALL, ...) may change what the programs do."""
    return {"PATH": os.defpath, "LC_ALL": "C"}


def _prepare(instance: Instance, programs: Path, account: Account | None) -> None:
    # With the lock held and the old processes gone, what they left in the way is stale, whoever has their
    # numbers now.
    end_leftover_postgres(instance)
    data = data_folder(instance)
    (data / "postmaster.pid").unlink(missing_ok=True)
    for socket in instance.postgres_socket_folder.glob(".s.PGSQL.5432*"):
        socket.unlink()
    for unfinished in data.parent.glob("init-*"):
        shutil.rmtree(unfinished)
    if not data.exists():
        unfinished = data.with_name(f"init-{os.getpid()}")
        argv = [str(programs / "initdb"), "-D", str(unfinished), "-U", NAME, *INITDB_OPTIONS]
        _run(argv, instance, account=account)
        unfinished.rename(data)


def _answers(instance: Instance) -> bool:
    argv = [str(postgres_programs() / "pg_isready"), "-q", "-h", str(instance.postgres_socket_folder), "-U", NAME]
    return subprocess.run(argv, env=_environment(), check=False).returncode == 0


def _make_database(instance: Instance) -> None:
    argv = [str(postgres_programs() / "createdb"), "-h", str(instance.postgres_socket_folder), "-U", NAME, NAME]
    try:
        _run(argv, instance)
    except EmbeddedError as error:
        if "already exists" not in str(error):
            raise


def _run(argv: list[str], instance: Instance, *, account: Account | None = None) -> None:
    """Run to the end, out of Ctrl-C's reach. Raises EmbeddedError with the program's last line."""
    done = subprocess.run(
        argv,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        env={**_environment(), MARK: str(instance.home)},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        check=False,
    )
    if done.returncode:
        last = [line for line in done.stdout.splitlines() if line.strip()][-1:]
        raise EmbeddedError(f"{Path(argv[0]).name} failed: {''.join(last) or f'exit code {done.returncode}'}")
