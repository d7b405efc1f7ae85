"""The embedded Valkey: how it is started, and started again after any crash."""

import os
import signal
import socket
from pathlib import Path

from fermata.embedded.account import server_account
from fermata.embedded.folders import make_folders, own_folder
from fermata.embedded.instance import Instance
from fermata.embedded.leftovers import end, standing_in
from fermata.embedded.program import Program, Server
from fermata.embedded.wheels import valkey_program

OPTIONS = {
    "port": "0",
    "unixsocketperm": "700",
    "save": "",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "maxmemory": "256mb",
    "maxmemory-policy": "noeviction",
    "loglevel": "notice",
}


def data_folder(instance: Instance) -> Path:
    return instance.servers / "valkey"


def end_leftover_valkey(instance: Instance) -> int:
    """End every process of an earlier start. Return their number."""
    return end(lambda: standing_in(data_folder(instance)), signal.SIGTERM, grace=5)


def valkey_server(instance: Instance) -> Server:
    """Make the folders, and describe the server. Call it under the instance's lock.

    Raises EmbeddedError if this machine cannot run it.
    """
    make_folders(instance, server_account(instance.servers / "postgres"))
    own_folder(data_folder(instance), mode=0o700)
    options = {**OPTIONS, "unixsocket": str(instance.valkey_socket), "dir": str(data_folder(instance))}
    program = Program(
        name="valkey",
        argv=[
            str(valkey_program()),
            *(part for name, value in options.items() for part in (f"--{name}", value)),
        ],
        env={"PATH": os.defpath, "LC_ALL": "C"},
        folder=data_folder(instance),
        prepare=lambda: _prepare(instance),
        socket=instance.valkey_socket,
        echo=False,
    )
    return Server(program, ready=lambda: _answers(instance.valkey_socket))


def _prepare(instance: Instance) -> None:
    # A Valkey takes an existing socket's name silently, and removes the name when it ends, whoever has it
    # by then.
    end_leftover_valkey(instance)
    instance.valkey_socket.unlink(missing_ok=True)


def _answers(path: Path) -> bool:
    """Whether it says PONG: while it reads its log after a start it says -LOADING instead."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False
