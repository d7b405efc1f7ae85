"""`manage.py run show|cancel|retry|fork`, as an operator uses it."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command

from runs.engine.executor import execute
from runs.models import Agent, Run, RunHead
from runs.services.starting import start_run
from tests.engine.flows import CALLS, SWITCH
from tests.support.processes import ROOT, environment

pytestmark = pytest.mark.django_db(transaction=True)


def run_command(*arguments: object) -> str:
    output = StringIO()
    call_command("run", *map(str, arguments), stdout=output)
    return output.getvalue()


def refusal(*arguments: object) -> str:
    with pytest.raises(CommandError) as refused:
        run_command(*arguments)
    return str(refused.value)


def status_of(run: Run) -> str:
    return RunHead.objects.get(run=run).status


@pytest.fixture
def waiting(agent: Agent) -> Run:
    """It has sent something, and waits for an event."""
    CALLS.clear()
    SWITCH.clear()
    run = start_run(agent=agent, workflow="test/branches", input=None, title="Waits\u202e\nhere")
    execute(run.id, worker="test")
    return run


@pytest.fixture
def failed(agent: Agent) -> Run:
    CALLS.clear()
    SWITCH["send"] = "refuse"
    run = start_run(agent=agent, workflow="test/steps", input=None)
    execute(run.id, worker="test")
    SWITCH.clear()
    assert status_of(run) == "failed"
    return run


def test_show_says_where_a_run_stands(waiting: Run) -> None:
    lines = run_command("show", waiting.id).splitlines()
    assert lines[:5] == [
        f"{waiting.id}  Waits\\u202e\\nhere",
        "status      suspended: event: waits at go",
        "workflow    test/branches/1, phase start, turn 0",
        "checkpoint  0",
        "tries here  0 crashes, 0 failures",
    ]
    assert any("step        first" in line and "tool test/send" in line for line in lines)


def test_show_says_why_a_run_failed(failed: Run) -> None:
    assert "error       StepFailed: no such account\n" in run_command("show", failed.id)


def test_cancel_ends_it(waiting: Run) -> None:
    assert run_command("cancel", waiting.id, "--reason", "not needed") == f"{waiting.id} is cancelled.\n"
    waiting.refresh_from_db()
    assert (status_of(waiting), waiting.error) == ("cancelled", "not needed")
    assert run_command("cancel", waiting.id) == f"{waiting.id} was cancelled before.\n"


def test_retry_goes_on_from_the_last_checkpoint(failed: Run) -> None:
    assert run_command("retry", failed.id) == f"{failed.id} is queued again.\n"
    execute(failed.id, worker="test")
    assert status_of(failed) == "completed"
    assert CALLS["look a"] == 1


def test_fork_starts_another_run_from_the_newest_checkpoint(failed: Run) -> None:
    output = run_command("fork", failed.id, "--acknowledge")
    fork = Run.objects.get(pk=UUID(output.split()[0]))
    assert (fork.parent, fork.parent_seq) == (failed, 1)
    execute(fork.id, worker="test")
    assert status_of(fork) == "completed"


def test_fork_shows_first_what_would_be_done_again(waiting: Run) -> None:
    why = refusal("fork", waiting.id, "--seq", 0)
    assert why == "after that checkpoint the run already did: test/send (first); acknowledge them to fork"
    assert Run.objects.count() == 1
    run_command("fork", waiting.id, "--seq", 0, "--acknowledge")
    assert Run.objects.count() == 2


def test_what_is_wrong_is_one_line(waiting: Run) -> None:
    unknown = uuid4()
    assert refusal("show", "A-7") == "'A-7' is not the id of a run"
    for action in ("show", "cancel", "retry", "fork"):
        assert refusal(action, unknown) == f"there is no run {unknown}"
    assert refusal("retry", waiting.id) == "the run is suspended: it cannot be retried"
    assert refusal("fork", waiting.id, "--seq", 7) == f"run {waiting.id} has no checkpoint 7"
    run_command("cancel", waiting.id)
    assert refusal("retry", waiting.id) == "the run is cancelled: it cannot be retried"


def test_it_exits_with_1() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "run", "retry", str(uuid4())],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
