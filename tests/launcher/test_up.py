"""Starting and stopping, seen from outside."""

import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from fermata.embedded.instance import CHECKOUT, Instance
from fermata.embedded.leftovers import marked
from tests.launcher.running import (
    STAND_IN,
    Start,
    environment,
    free_port,
    launcher,
    new_home,
    processes,
    query,
    remove_home,
    valkey_says,
    wait_until,
)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_it_starts_the_services_and_then_the_programs(fresh: Instance, start: Start) -> None:
    running = start(fresh).ready()
    assert query(fresh, "show server_version").startswith("18")
    assert valkey_says(fresh, "PING") == "+PONG"
    lines = running.output.splitlines()
    assert lines[0] == "manage migrate"
    assert "manage demo" in lines  # while the programs start
    wait_until(lambda: "worker   | the worker works" in running.output)


def test_an_awkward_home_is_reached_through_the_settings(fresh: Instance, start: Start) -> None:
    fresh.home.mkdir()
    awkward = Instance(fresh.home / "a, b:c@d? 100%25 é 'q'")
    running = start(awkward).ready()
    use = (
        "import django; django.setup(); from django.db import connection as c; c.ensure_connection();"
        "from fermata.celery import app; app.connection_for_write().ensure_connection(max_retries=1)"
    )
    env = environment(awkward, DJANGO_SETTINGS_MODULE="fermata.settings")
    subprocess.run([sys.executable, "-c", use], cwd=CHECKOUT, env=env, check=True, timeout=30)
    running.stop()
    shutil.rmtree(awkward.sockets)  # not in its home: the comma


@pytest.mark.parametrize("request_to_stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_stops_everything_when_asked(instance: Instance, start: Start, request_to_stop: signal.Signals) -> None:
    running = start(instance).ready()
    running.process.send_signal(request_to_stop)
    assert running.ended(60) == 0
    assert processes(instance) == []


def test_it_stops_while_it_is_still_starting(fresh: Instance, start: Start) -> None:
    running = start(fresh)
    wait_until(lambda: processes(fresh))
    running.process.send_signal(signal.SIGTERM)
    assert running.ended(60) == 0
    assert processes(fresh) == []


def test_a_second_request_does_not_wait_for_a_program_that_does_not_stop(instance: Instance, start: Start) -> None:
    running = start(instance, STAND_IN_STUBBORN="1").ready()
    running.process.send_signal(signal.SIGINT)
    wait_until(lambda: not listens(running.port))  # two signals at once are one
    asked = time.monotonic()
    running.process.send_signal(signal.SIGINT)
    wait_until(lambda: marked(instance.home) == [])
    assert time.monotonic() - asked < 4
    assert running.ended(60) == 0
    assert processes(instance) == []


def test_a_terminal_that_is_gone_does_not_keep_it_from_stopping(instance: Instance) -> None:
    argv = [sys.executable, "-m", STAND_IN]
    env = environment(instance, PORT=str(free_port()))
    with subprocess.Popen(argv, cwd=CHECKOUT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        while not process.stdout.readline().startswith(b"Fermata is ready"):
            assert process.poll() is None
        process.stdout.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert processes(instance) == []


def test_it_stops_when_its_terminal_is_closed(instance: Instance) -> None:
    terminal, inside = pty.openpty()
    env = environment(instance, PORT=str(free_port()))
    with subprocess.Popen([sys.executable, "-m", STAND_IN], cwd=CHECKOUT, env=env, stdout=inside) as process:
        os.close(inside)
        output = b""
        while b"Fermata is ready" not in output:
            output += os.read(terminal, 4096)
        os.close(terminal)
        assert process.wait(60) == 0
    assert processes(instance) == []


def test_it_stops_when_make_is_killed(instance: Instance) -> None:
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-m', '{STAND_IN}'])"
    env = environment(instance, PORT=str(free_port()), MAKELEVEL="1")
    with subprocess.Popen([sys.executable, "-c", start], cwd=CHECKOUT, env=env) as make:
        wait_until(lambda: "web" in [path.stem for path in instance.logs.glob("*")])
        make.kill()
    wait_until(lambda: processes(instance) == [])


def test_a_second_start_says_that_it_runs_already(instance: Instance, start: Start) -> None:
    first = start(instance).ready()
    second = start(instance)
    assert second.ended() == 1
    assert "already running" in second.output
    assert f"http://127.0.0.1:{first.port}" in second.output
    assert valkey_says(instance, "PING") == "+PONG"


def test_two_homes_run_side_by_side(instance: Instance, start: Start) -> None:
    other = new_home()
    try:
        start(instance).ready()
        running = start(other).ready()
        query(other, "create table here ()")
        assert query(instance, "select to_regclass('here')") == ""
        running.stop()
        assert valkey_says(instance, "PING") == "+PONG"
    finally:
        remove_home(other)


def test_a_port_in_use_is_said_before_anything_starts(fresh: Instance, start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        running = start(fresh, PORT=str(port))
        assert running.ended() == 1
    assert running.output.startswith(f"Port {port} is in use")
    assert len(running.output.splitlines()) == 1
    assert not fresh.servers_link.exists()


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", "８０"])
def test_a_port_that_is_none_is_refused(fresh: Instance, port: str) -> None:
    done = launcher(fresh, "up", PORT=port)
    assert done.returncode == 1
    assert done.stdout.startswith("PORT must be a number from 1 to 65535")


def test_services_that_are_named_are_not_started(fresh: Instance, start: Start) -> None:
    start(fresh, DATABASE_URL="postgres://db.example/x", CELERY_BROKER_URL="amqp://mq.example//").ready()
    assert not fresh.servers_link.exists()


def test_one_service_that_is_named_is_not_started_and_the_other_is(fresh: Instance, start: Start) -> None:
    start(fresh, DATABASE_URL="postgres://db.example/x").ready()
    assert valkey_says(fresh, "PING") == "+PONG"
    assert not fresh.postgres_socket_folder.exists()


def test_the_secret_key_is_made_once_and_is_nobody_elses(instance: Instance, start: Start) -> None:
    keys = set()
    for _ in range(2):
        running = start(instance).ready()
        keys.add(instance.secret_key.read_text())
        running.stop()
    assert len(keys) == 1
    assert len(keys.pop()) >= 50
    assert instance.secret_key.stat().st_mode & 0o777 == 0o600


def test_stop_ends_a_running_instance(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    done = launcher(instance, "stop")
    assert (done.returncode, done.stdout) == (0, "Fermata has stopped.\n")
    assert running.ended() == 0
    assert processes(instance) == []


def test_stop_has_nothing_to_do_where_nothing_ran(fresh: Instance) -> None:
    done = launcher(fresh, "stop")
    assert (done.returncode, done.stdout) == (0, "Nothing was running.\n")
    assert not fresh.home.exists()
