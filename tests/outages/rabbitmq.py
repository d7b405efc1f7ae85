"""A RabbitMQ node of the tests' own, beside the machine's."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.launcher.running import free_port
from tests.support.waiting import until

SERVER = shutil.which("rabbitmq-server") or "/usr/sbin/rabbitmq-server"


class RabbitMQ:
    def __init__(self, *, consumer_timeout: int | None = None) -> None:
        """`consumer_timeout`: seconds after which the channel of who acknowledges nothing is closed."""
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="fermata-rabbit-"))
        self._folder.chmod(0o777)
        self._env = {
            **os.environ,
            "RABBITMQ_NODENAME": f"fermata{self.port}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "none"),
        }
        if consumer_timeout is not None:
            self._env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] = (
                f"-rabbit consumer_timeout {consumer_timeout * 1000} -rabbit channel_tick_interval 1000"
            )
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}//"

    def start(self) -> None:
        with (self._folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [SERVER], env=self._env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        until(self._answers, what="RabbitMQ answers", seconds=60)

    def stop(self) -> None:
        """SIGKILL. The script that starts the node changes the user and the session: find it by its environment."""
        for pid in self._pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(60)
            self._process = None
        until(lambda: not self._answers(), what="RabbitMQ is gone", seconds=30)

    def _pids(self) -> list[int]:
        mark = str(self._folder).encode()
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
        return found

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.settimeout(2)
                connection.sendall(b"AMQP\x00\x00\x09\x01")
                return bool(connection.recv(1))
        except OSError:
            return False
