"""The model: phases, recorded steps, and what may differ when a phase is tried again."""

from __future__ import annotations

import pytest

from approvals.models import AuditEvent
from runs.models import Step
from runs.services.answering import record_event
from runs.services.controlling import retry_run
from tests.engine.conftest import Driver
from tests.engine.flows import CALLS, SWITCH


def test_a_run_goes_through_its_phases_and_completes(driver: Driver) -> None:
    run = driver.start("test/steps")
    head = driver.go_on(run)
    assert (head.status, head.turn, head.head_seq) == ("completed", 1, 2)
    assert driver.result(run) == {"looked": "seen a", "sent": ["sent x", "sent y"]}
    assert CALLS["send x"] == CALLS["send y"] == 1


def test_a_phase_that_is_tried_again_meets_its_recorded_steps(driver: Driver) -> None:
    run = driver.start("test/branches")
    assert driver.go_on(run).reason == "event"
    record_event(run_id=run.id, name="go", payload=None)
    assert driver.go_on(run).status == "completed"
    assert CALLS["send first"] == 1


def test_another_branch_is_blocked_before_it_has_an_effect(driver: Driver) -> None:
    # TradingAgents#1089: a changed plan does not silently resume the old one
    run = driver.start("test/branches")
    driver.go_on(run)
    SWITCH["branch"] = "other"
    record_event(run_id=run.id, name="go", payload=None)
    head = driver.go_on(run)
    assert head.status == "blocked"
    assert "diverged before step 'other'" in head.detail
    assert AuditEvent.objects.filter(chain=f"run:{run.id}", type="run.blocked").count() == 1
    assert CALLS["send other"] == 0

    SWITCH.clear()
    retry_run(run_id=run.id, actor="person:1")
    assert driver.go_on(run).status == "completed"
    assert CALLS["send first"] == 1


def test_the_same_key_with_other_arguments_is_blocked(driver: Driver) -> None:
    # canvas#243: no new key for another body
    run = driver.start("test/branches")
    driver.go_on(run)
    SWITCH["argument"] = "something else"
    record_event(run_id=run.id, name="go", payload=None)
    head = driver.go_on(run)
    assert head.status == "blocked"
    assert "other arguments" in head.detail
    assert CALLS["send something else"] == 0


def test_a_swallowed_signal_is_honoured_all_the_same(driver: Driver) -> None:
    # prefect#9824, prefect#20388: no step starts after the suspend
    run = driver.start("test/swallows")
    head = driver.go_on(run)
    assert (head.status, head.reason) == ("suspended", "event")
    assert CALLS["swallowed"] == CALLS["refused"] == 1
    assert CALLS["send after the gate"] == 0


def test_not_performed_is_tried_again_under_a_new_key(driver: Driver) -> None:
    # C12: the first resume meets a 503
    run = driver.start("test/steps")
    SWITCH["send"] = "not performed"
    head = driver.go_on(run)
    assert (head.status, head.failures) == ("queued", 1)
    assert head.wake_at is not None
    SWITCH.clear()
    type(head).objects.filter(pk=head.pk).update(wake_at=None)
    assert driver.go_on(run).status == "completed"
    assert CALLS["send x"] == 2
    assert sorted(count for name, count in CALLS.items() if name.startswith("key ")) == [1, 1, 1]


def test_an_unknown_outcome_is_sent_again_under_the_same_key(driver: Driver) -> None:
    run = driver.start("test/steps")
    SWITCH["send"] = "break"
    head = driver.go_on(run)
    assert head.status == "queued"
    SWITCH.clear()
    type(head).objects.filter(pk=head.pk).update(wake_at=None)
    assert driver.go_on(run).status == "completed"
    assert sorted(count for name, count in CALLS.items() if name.startswith("key ")) == [1, 2]


def test_a_known_failure_is_the_same_when_it_is_met_again(driver: Driver) -> None:
    run = driver.start("test/steps")
    SWITCH["send"] = "refuse"
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert (run.error_type, run.error) == ("StepFailed", "no such account")
    assert Step.objects.get(run=run, key="send[x]").state == "failed"
    assert "flows.py" in run.traceback


def test_an_operator_retries_from_the_last_checkpoint(driver: Driver) -> None:
    run = driver.start("test/steps")
    SWITCH["send"] = "refuse"
    driver.go_on(run)
    SWITCH.clear()
    retry_run(run_id=run.id, actor="person:1")
    assert driver.go_on(run).status == "completed"
    assert CALLS["look a"] == 1


@pytest.mark.parametrize("payload", [{"n": 1}, None])
def test_an_event_that_comes_early_is_not_lost(driver: Driver, payload: object) -> None:
    # inngest#1433
    run = driver.start("test/branches")
    assert record_event(run_id=run.id, name="go", payload=payload) is True
    assert record_event(run_id=run.id, name="go", payload=payload) is False
    assert driver.go_on(run).status == "completed"
