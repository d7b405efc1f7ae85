"""What a kill leaves behind, and that the next start copes."""

import http.client
import os
import signal
import subprocess
import time
from contextlib import suppress

from fermata.embedded import postgres, valkey
from fermata.embedded.instance import Instance
from fermata.embedded.leftovers import marked, standing_in
from fermata.embedded.wheels import postgres_programs, valkey_program
from tests.launcher.running import (
    Running,
    Start,
    is_ours,
    launcher,
    processes,
    query,
    valkey_says,
    wait_until,
)


def answers(running: Running) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=2)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def kill_all(running: Running) -> None:
    victims = processes(running.instance)
    running.kill()
    for pid in victims:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def busy_backend(instance: Instance) -> "subprocess.Popen[bytes]":
    """A query that never looks whether its server still lives. The caller ends the client."""
    sql = "do $$ begin loop end loop; end $$"
    argv = [
        str(postgres_programs() / "psql"),
        "-h",
        str(instance.postgres_socket_folder),
        "-U",
        "fermata",
        "-c",
        sql,
    ]
    client = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: query(instance, "select 1 from pg_stat_activity where query like 'do $$%' and state = 'active'"))
    return client


def kill_postmaster(instance: Instance) -> None:
    os.kill(int((postgres.data_folder(instance) / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)


def test_everything_ends_with_a_killed_supervisor(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    wait_until(lambda: "the worker works" in running.output)  # and has started something
    running.kill()
    wait_until(lambda: processes(instance) == [] or processes(instance) == marked(instance.home))
    # What the worker had started does not hear of it; that is for the next start.
    assert launcher(instance, "stop").stdout == "Fermata has stopped.\n"
    assert processes(instance) == []


def test_the_next_start_after_a_kill_keeps_the_data(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    query(instance, "create table kept as select 7 as number")
    valkey_says(instance, "SET kept 7")
    time.sleep(1.2)  # appendfsync everysec
    running.kill()
    start(instance, PORT=str(running.port)).ready()
    assert query(instance, "select number from kept") == "7"
    assert valkey_says(instance, "GET kept").endswith("7")


def test_the_next_start_after_a_kill_of_everything_works(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    kill_all(running)
    start(instance, PORT=str(running.port)).ready()


def test_orphans_are_ended_by_the_next_start(instance: Instance, start: Start) -> None:
    running = start(instance, STAND_IN_STUBBORN="1").ready()
    orphans = marked(instance.home)
    running.kill()
    assert set(marked(instance.home)) & set(orphans), "the worker ignores SIGTERM"
    start(instance, PORT=str(running.port)).ready()
    assert not set(marked(instance.home)) & set(orphans)


def test_a_busy_backend_that_outlived_its_server_is_ended(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    client = busy_backend(instance)
    running.kill()
    try:
        start(instance).ready()
        assert query(instance, "select 1") == "1"
    finally:
        client.kill()
        client.wait()


def test_a_pid_file_whose_number_is_another_process_now_is_no_obstacle(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    kill_all(running)
    pid_file = postgres.data_folder(instance) / "postmaster.pid"
    _, *rest = pid_file.read_text().splitlines()
    pid_file.write_text("\n".join([str(os.getpid()), *rest]))
    start(instance).ready()


def test_a_program_that_dies_is_started_again(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    (web,) = [pid for pid in marked(instance.home) if is_ours(pid, "web")]
    os.kill(web, signal.SIGKILL)
    wait_until(lambda: "web ended by itself (SIGKILL)" in running.output)
    wait_until(lambda: answers(running))


def test_what_a_dead_program_had_started_is_ended(instance: Instance, start: Start) -> None:
    start(instance).ready()
    wait_until(lambda: [pid for pid in marked(instance.home) if is_ours(pid, "sleep")])
    (pool,) = [pid for pid in marked(instance.home) if is_ours(pid, "sleep")]
    (worker,) = [pid for pid in marked(instance.home) if is_ours(pid, "worker")]
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: pool not in marked(instance.home))


def test_postgres_is_started_again_under_a_busy_backend(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    client = busy_backend(instance)
    kill_postmaster(instance)
    try:
        wait_until(lambda: "postgres ended by itself" in running.output)
        wait_until(lambda: postgres_answers(instance))
    finally:
        client.kill()
        client.wait()


def test_a_stolen_valkey_socket_is_taken_back(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    valkey_says(instance, "SET ours 42")
    wait_until(lambda: time.time() - instance.valkey_socket.stat().st_ctime > 1.5)  # known by then
    thief = subprocess.Popen(
        [str(valkey_program()), "--port", "0", "--unixsocket", str(instance.valkey_socket), "--save", ""],
        stdout=subprocess.DEVNULL,
        cwd=instance.home.parent,
    )
    try:
        wait_until(lambda: "valkey has lost its socket" in running.output)
        wait_until(lambda: valkey_answers(instance, "GET ours", "42"))
    finally:
        thief.kill()
        thief.wait()
    (own,) = standing_in(valkey.data_folder(instance))
    assert f"process_id:{own}" in valkey_says(instance, "INFO server")


def test_the_last_words_of_a_server_that_does_not_start_are_shown(instance: Instance, start: Start) -> None:
    running = start(instance).ready()
    running.stop()
    with (postgres.data_folder(instance) / "postgresql.conf").open("a") as file:
        file.write("shared_buffers = 'no size'\n")
    failed = start(instance)
    assert failed.ended() == 1
    assert failed.output.startswith("postgres ended by itself (exit code 1): ")
    assert "FATAL:  configuration file" in failed.output
    assert f"its log is {instance.logs}/postgres.log" in failed.output
    assert processes(instance) == []


def postgres_answers(instance: Instance) -> bool:
    try:
        return query(instance, "select 1") == "1"
    except subprocess.CalledProcessError:
        return False


def valkey_answers(instance: Instance, command: str, answer: str) -> bool:
    try:
        return valkey_says(instance, command).endswith(answer)
    except OSError:
        return False
