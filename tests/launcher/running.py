"""A supervisor under test, as its user sees it: a process, its output, its files."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from fermata.embedded import postgres, valkey
from fermata.embedded.instance import CHECKOUT, Instance
from fermata.embedded.leftovers import marked, standing_in
from fermata.embedded.wheels import postgres_programs

STAND_IN = "tests.launcher.stand_in"


def wait_until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def new_home(parent_mode: int = 0o755) -> Instance:
    """A home that does not exist yet, in a new folder with the given mode."""
    parent = Path(tempfile.mkdtemp(prefix="fermata-test-")).resolve()
    parent.chmod(parent_mode)
    return Instance(parent / "home")


def remove_home(instance: Instance) -> None:
    """End whatever a failed test left there, and remove the files."""
    if processes(instance):
        launcher(instance, "stop")
    for folder in (instance.sockets, instance.servers, instance.home.parent):
        shutil.rmtree(folder, ignore_errors=True)


def environment(instance: Instance, **variables: str) -> dict[str, str]:
    not_ours = {"DATABASE_URL", "CELERY_BROKER_URL", "MAKELEVEL"}
    inherited = {name: value for name, value in os.environ.items() if name not in not_ours}
    return {**inherited, "FERMATA_HOME": str(instance.home), **variables}


def launcher(instance: Instance, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the launcher to its end."""
    return subprocess.run(
        [sys.executable, "-m", "fermata.launcher", *arguments],
        cwd=CHECKOUT,
        env=environment(instance, **variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def is_ours(pid: int, word: str) -> bool:
    """Whether the word is in the process's command line."""
    return word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()


def processes(instance: Instance) -> list[int]:
    """All processes of the instance except its supervisor."""
    servers = [*standing_in(postgres.data_folder(instance)), *standing_in(valkey.data_folder(instance))]
    return sorted({*marked(instance.home), *servers})


def query(instance: Instance, sql: str) -> str:
    argv = [
        str(postgres_programs() / "psql"),
        "-h",
        str(instance.postgres_socket_folder),
        "-U",
        "fermata",
        "-qAt",
    ]
    return subprocess.run([*argv, "-c", sql], capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def valkey_says(instance: Instance, command: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(str(instance.valkey_socket))
        connection.sendall(f"{command}\r\n".encode())
        return connection.recv(4096).decode().strip()


class Running:
    """A started `up`, whose output goes to a file beside its home; with the stand-ins, unless `whole`."""

    def __init__(self, instance: Instance, *, whole: bool = False, **variables: str) -> None:
        self.instance = instance
        self.port = int(variables.setdefault("PORT", str(free_port())))
        self._output = instance.home.with_name(f"output-{self.port}")
        launcher = ["fermata.launcher", "up"] if whole else [STAND_IN]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *launcher],
                cwd=CHECKOUT,
                env=environment(instance, **variables),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def ready(self, seconds: float = 60) -> "Running":
        line = f"Fermata is ready at http://127.0.0.1:{self.port}"
        wait_until(lambda: line in self.output.splitlines() or self.process.poll() is not None, seconds)
        assert self.process.poll() is None, self.output
        return self

    def ended(self, seconds: float = 30) -> int:
        return self.process.wait(seconds)

    def kill(self) -> None:
        """As the out-of-memory killer does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        assert self.ended() == 0


class Start(Protocol):
    def __call__(self, instance: Instance, *, whole: bool = ..., **variables: str) -> Running: ...
