"""Gates: what is asked, answered, performed, and asked again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import F

from approvals.models import Approval, Grant
from runs.errors import UnknownWorkflow
from runs.models import Agent, RunHead
from runs.services.answering import answer_gate
from runs.services.controlling import fork_run
from tests.engine.conftest import Driver
from tests.engine.deploys import Deployment
from tests.engine.flows import CALLS, SWITCH
from tests.support.api import as_agent


def test_an_approved_call_is_performed_once(driver: Driver) -> None:
    # langgraph#7361, aegra#320: resuming is never a restart; prefect#9824: pausing is no failure
    run = driver.start("test/gate")
    head = driver.go_on(run)
    assert (head.status, head.reason, head.lease) == ("suspended", "approval", None)
    driver.decide(driver.pending(run)["pay"])
    assert RunHead.objects.get(run=run).status == "queued"
    assert driver.go_on(run).status == "completed"
    # the phase started again from its entry: the history was appended once, the step before the gate ran once
    assert driver.result(run) == {"receipt": "paid 1.00", "history": 1}
    assert CALLS["send before"] == 1
    assert Grant.objects.get(approval__run=run).status == "succeeded"


def test_an_edited_call_is_performed_as_edited(driver: Driver) -> None:
    run = driver.start("test/gate")
    driver.go_on(run)
    driver.decide(driver.pending(run)["pay"], "edit", args='{"amount": "0.50"}')
    assert driver.go_on(run).status == "completed"
    assert (CALLS["pay 0.50"], CALLS["pay 1.00"]) == (1, 0)


def test_a_rejected_call_is_not_performed(driver: Driver) -> None:
    run = driver.start("test/gate")
    driver.go_on(run)
    driver.decide(driver.pending(run)["pay"], "reject", message="too much")
    driver.go_on(run)
    assert driver.result(run) == {"outcome": "rejected", "why": "too much"}
    assert CALLS["pay 1.00"] == 0


def test_executed_is_what_was_reviewed_or_it_is_asked_again(driver: Driver) -> None:
    # C23
    run = driver.start("test/gate")
    driver.go_on(run)
    driver.decide(driver.pending(run)["pay"])
    SWITCH["amount"] = "100.00"
    head = driver.go_on(run)
    assert (head.status, head.reason) == ("suspended", "approval")
    assert CALLS["pay 1.00"] == CALLS["pay 100.00"] == 0
    successor = driver.pending(run)["pay"]
    assert successor.args == '{"amount":"100.00"}'
    assert successor.supersedes is not None
    driver.decide(successor)
    assert driver.go_on(run).status == "completed"
    assert (CALLS["pay 1.00"], CALLS["pay 100.00"]) == (0, 1)


def test_a_proposal_that_changes_at_every_resume_fails_the_run(driver: Driver) -> None:
    run = driver.start("test/gate")
    driver.go_on(run)
    for amount in ("2.00", "3.00", "4.00", "5.00"):
        driver.decide(driver.pending(run)["pay"])
        SWITCH["amount"] = amount
        head = driver.go_on(run)
    assert head.status == "failed"
    run.refresh_from_db()
    assert "put it in a step" in run.error


def test_gates_one_after_the_other_in_a_phase_repeat_nothing(driver: Driver) -> None:
    # C09, langgraph#7780, langgraph#6792
    run = driver.start("test/three-gates")
    for n in (1, 2, 3):
        assert driver.go_on(run).reason == "approval"
        driver.decide(driver.pending(run)[f"gate{n}"])
    assert driver.go_on(run).status == "completed"
    assert CALLS["send k1"] == 1


def test_mixed_decisions_are_matched_by_key(driver: Driver) -> None:
    # C18, langgraph#6533, langgraph#6626, langgraph#5952, langchainjs#11125
    run = driver.start("test/gate-group")
    driver.go_on(run)
    pending = driver.pending(run)
    driver.decide(pending["call_3"])
    driver.decide(pending["call_2"], "reject", message="not this one")
    assert RunHead.objects.get(run=run).status == "suspended"
    driver.decide(pending["call_1"])
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {
        "call_1": "paid 1.00",
        "call_2": "not done: not this one",
        "call_3": "paid 3.00",
    }
    assert driver.pending(run) == {}


def test_the_questions_of_one_gate_count_together_against_the_cap(driver: Driver, settings) -> None:
    settings.FERMATA_PENDING_CAP = 2
    run = driver.start("test/gate-group")
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert "may have 2 open approvals" in run.error
    assert not Approval.objects.exists()


def test_a_gate_in_a_loop_is_a_new_one_in_every_turn(driver: Driver) -> None:
    # prefect#18326
    run = driver.start("test/gate-loop")
    for _ in range(3):
        driver.go_on(run)
        driver.decide(driver.pending(run)["pay"])
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == ["paid 1.00", "paid 2.00", "paid 3.00"]
    assert Approval.objects.filter(run=run).count() == 3


def test_a_grant_that_ran_out_unspent_asks_again(driver: Driver, move_clock: Callable[[timedelta], None]) -> None:
    run = driver.start("test/gate")
    driver.go_on(run)
    approval = driver.pending(run)["pay"]
    driver.decide(approval)
    move_clock(approval.grant_life + timedelta(seconds=1))
    head = driver.go_on(run)
    assert (head.status, head.reason) == ("suspended", "approval")
    assert CALLS["pay 1.00"] == 0
    driver.decide(driver.pending(run)["pay"])
    assert driver.go_on(run).status == "completed"
    assert CALLS["pay 1.00"] == 1


def test_a_first_resume_that_meets_a_503_is_tried_again_under_the_same_approval(
    driver: Driver, move_clock: Callable[[timedelta], None]
) -> None:
    # C12, agent-framework#8575: a failed approval-resume left the session unusable
    run = driver.start("test/gate")
    driver.go_on(run)
    driver.decide(driver.pending(run)["pay"])
    SWITCH["pay"] = "not performed"
    head = driver.go_on(run)
    assert (head.status, head.detail) == ("queued", "trying gate:pay again: 503")
    RunHead.objects.filter(run=run).update(wake_at=F("wake_at") + timedelta(minutes=1))  # it was a second away
    assert driver.go_on(run).status == "queued"  # not before its time
    SWITCH.clear()
    move_clock(timedelta(seconds=61))
    assert driver.go_on(run).status == "completed"
    assert CALLS["pay 1.00"] == 2
    assert Approval.objects.filter(run=run).count() == 1
    assert Grant.objects.get(approval__run=run).status == "succeeded"


def test_a_fork_whose_workflow_is_gone_is_told_which_there_are(driver: Driver, deployment: Deployment) -> None:
    run = driver.start(deployment.workflow())
    deployment.remove_workflow("test/deployed")
    with pytest.raises(UnknownWorkflow, match=r"no workflow 'test/deployed' here; known: .*refund-agent"):
        fork_run(run_id=run.id, seq=0, actor="person:1", acknowledged=True)


def test_a_fork_of_a_posted_run_asks_its_questions_anew(driver: Driver, agent: Agent) -> None:
    run_id = as_agent(agent).post("/suspensions", posted()).json()["run"]["id"]
    fork = fork_run(run_id=UUID(run_id), seq=0, actor="person:1", acknowledged=True)
    head = driver.go_on(fork)
    assert (head.status, head.reason) == ("suspended", "approval")
    assert driver.pending(fork)["call_1"].args == '{"amount":"49.90","order":"A-7"}'


def posted() -> dict[str, object]:
    """A suspension that a workflow of this deployment resumes."""
    return {
        "run": {"external_id": "order-7731", "title": "Refund agent"},
        "snapshot": {"schema": "refund-agent/1", "state": {}, "history": [], "position": {}, "pending": []},
        "approvals": [
            {"key": "call_1", "tool": "refund", "args": {"order": "A-7", "amount": "49.90"}, "title": "Refund A-7"}
        ],
        "resume": {"mode": "workflow", "workflow": "refund-agent", "phase": "act"},
    }


def test_a_gate_is_answered_once(driver: Driver) -> None:
    # langgraph#6663: the same gate answered twice with different values
    run = driver.start("test/gate")
    driver.go_on(run)
    approval = driver.pending(run)["pay"]
    driver.decide(approval)
    with transaction.atomic(), connection.cursor() as cursor:
        assert answer_gate(cursor, run_id=run.id, turn=0, key="pay", answer={"outcome": "rejected"}) is False
    assert driver.go_on(run).status == "completed"
    assert CALLS["pay 1.00"] == 1


def test_time_parked_counts_against_nothing(driver: Driver, move_clock: Callable[[timedelta], None]) -> None:
    # hatchet#4128
    run = driver.start("test/gate")
    driver.go_on(run)
    move_clock(timedelta(days=30))
    driver.decide(driver.pending(run)["pay"])
    head = driver.go_on(run)
    assert (head.status, head.crashes, head.failures) == ("completed", 0, 0)


def test_no_transaction_is_open_while_a_tool_runs(driver: Driver) -> None:
    # windmill#8952
    run = driver.start("test/gate")
    SWITCH["watch"] = True
    driver.go_on(run)
    driver.decide(driver.pending(run)["pay"])
    assert driver.go_on(run).status == "completed"
    assert CALLS["watched"] == 2
    assert CALLS["in a transaction"] == 0
