"""`manage.py after_restore`: nothing goes on by itself after a backup was restored."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from approvals.models import AuditEvent
from runs.engine.executor import execute
from runs.models import Agent, Run, RunHead
from runs.services.answering import record_event
from runs.services.controlling import cancel_run, retry_run
from runs.services.restoring import WHY
from runs.services.starting import start_run
from runs.services.sweeping import sweep
from tests.engine.flows import CALLS

pytestmark = pytest.mark.django_db(transaction=True)


def after_restore() -> str:
    output = StringIO()
    call_command("after_restore", stdout=output)
    return output.getvalue().splitlines()[0]


def started(agent: Agent, workflow: str) -> Run:
    return start_run(agent=agent, workflow=workflow, input=None)


def head_of(run: Run) -> RunHead:
    return RunHead.objects.get(run=run)


@pytest.fixture
def suspended(agent: Agent) -> Run:
    CALLS.clear()
    run = started(agent, "test/branches")
    execute(run.id, worker="test")
    assert head_of(run).status == "suspended"
    return run


def test_unfinished_runs_are_blocked_whatever_they_were_doing(agent: Agent, suspended: Run) -> None:
    queued, running, cancelled = (started(agent, "test/steps") for _ in range(3))
    RunHead.objects.filter(run=running).update(status="running", epoch=7, lease="2100-01-01T00:00Z")
    cancel_run(run_id=cancelled.id, actor="system")

    assert after_restore() == "3 unfinished runs are blocked for review."
    for run in (queued, running, suspended):
        head = head_of(run)
        assert (head.status, head.reason, head.detail, head.lease) == ("blocked", "", WHY, None)
    assert head_of(running).epoch == 8  # whoever still has it writes nothing more
    assert head_of(cancelled).status == "cancelled"


def test_doing_it_again_changes_nothing(suspended: Run) -> None:
    after_restore()
    before = RunHead.objects.values().get(run=suspended)
    assert after_restore() == "0 unfinished runs are blocked for review."
    assert RunHead.objects.values().get(run=suspended) == before


def test_only_a_person_lets_a_run_go_on(suspended: Run) -> None:
    after_restore()
    record_event(run_id=suspended.id, name="go", payload=None)
    assert sweep().unblocked == 0
    assert head_of(suspended).status == "blocked"

    retry_run(run_id=suspended.id, actor="system")
    execute(suspended.id, worker="test")
    assert head_of(suspended).status == "completed"
    assert CALLS["send first"] == 1


def test_a_run_that_still_waits_is_suspended_again(suspended: Run) -> None:
    after_restore()
    retry_run(run_id=suspended.id, actor="system")
    execute(suspended.id, worker="test")
    assert head_of(suspended).status == "suspended"


def test_a_run_that_was_blocked_before_keeps_its_reason(suspended: Run) -> None:
    RunHead.objects.filter(run=suspended).update(status="blocked", reason="", detail="no such phase", build="old")
    assert after_restore() == "1 unfinished runs are blocked for review."
    assert head_of(suspended).detail == f"{WHY}; it was blocked before: no such phase"
    assert sweep().unblocked == 0


def test_it_is_on_record_once(suspended: Run) -> None:
    after_restore()
    after_restore()
    event = AuditEvent.objects.get(chain=f"run:{suspended.id}", type="run.blocked")
    assert event.actor == "system"


def test_runs_whose_code_lives_elsewhere_are_left_to_their_agents(suspended: Run) -> None:
    Run.objects.filter(pk=suspended.pk).update(resume_mode="poll")
    assert after_restore() == "0 unfinished runs are blocked for review."
