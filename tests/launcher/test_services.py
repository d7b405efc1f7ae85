"""Services for the time of one command."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fermata.embedded.instance import CHECKOUT, Instance
from fermata.launcher.services import PREFIX
from tests.launcher.running import environment, new_home, processes, query, valkey_says, wait_until

NOWHERE = Instance(Path("/nonexistent"))
ASK = "import os; print(os.environ['FERMATA_HOME'])"


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files of this test's own."""
    instance = new_home()
    folder = instance.home.parent
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def run(*command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "fermata.launcher", "run-with-services", "--", *command]
    env = environment(NOWHERE, **variables)
    return subprocess.run(argv, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)


def start(*command: str) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-m", "fermata.launcher", "run-with-services", "--", *command]
    return subprocess.Popen(argv, cwd=CHECKOUT, env=environment(NOWHERE), stdout=subprocess.PIPE, text=True)


def homes(folder: Path) -> list[Instance]:
    return [Instance(home) for home in folder.glob(f"{PREFIX}*")]


@pytest.mark.parametrize("code", [0, 3])
def test_its_exit_code_is_the_commands(folder: Path, code: int) -> None:
    done = run(sys.executable, "-c", f"{ASK}; raise SystemExit({code})")
    assert done.returncode == code
    home = Path(done.stdout.strip())
    assert home.parent == folder
    assert not home.exists()


def test_a_command_that_a_signal_ends_fails_as_in_a_shell(folder: Path) -> None:
    assert run("sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_the_services_answer_while_the_command_runs(folder: Path) -> None:
    with start("sleep", "100") as process:
        wait_until(lambda: homes(folder) and homes(folder)[0].valkey_socket.exists())
        (instance,) = homes(folder)
        assert query(instance, "select 1") == "1"
        wait_until(lambda: valkey_says(instance, "PING") == "+PONG")
        process.terminate()
        process.wait(60)
    assert processes(instance) == []
    assert homes(folder) == []


def test_services_that_are_named_are_not_started(folder: Path) -> None:
    done = run("sh", "-c", 'ls "$FERMATA_HOME"', DATABASE_URL="postgres://x/x", CELERY_BROKER_URL="amqp://x//")
    assert done.stdout.split() == ["lock", "logs"]


def test_a_kill_leaves_no_process_and_the_next_run_clears_its_files_away(folder: Path) -> None:
    with start(sys.executable, "-c", f"{ASK}; import time; time.sleep(100)") as process:
        wait_until(lambda: homes(folder) and homes(folder)[0].valkey_socket.exists())
        (instance,) = homes(folder)
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: processes(instance) == [])
    long_ago = time.time() - 3600
    os.utime(instance.home, (long_ago, long_ago))
    assert run("true").returncode == 0
    assert homes(folder) == []
