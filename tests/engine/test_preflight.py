"""`manage.py preflight`: what the new code could not resume, said before it is deployed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from approvals.gates import require_approval
from checkpoints import codec
from checkpoints.codec import registry
from runs.authoring import RunContext, entry, tool
from runs.engine.tools import find_tool
from runs.models import Agent, Run, RunHead
from runs.services.controlling import cancel_run
from tests.engine.conftest import Driver
from tests.engine.deploys import Deployment
from tests.engine.test_authors import posted


def preflight(*arguments: str) -> tuple[int, str]:
    """Exit code and output."""
    output = StringIO()
    try:
        call_command("preflight", *arguments, stdout=output)
    except CommandError as error:
        return 1, f"{output.getvalue()}{error}\n"
    return 0, output.getvalue()


def reasons(run: Run) -> list[str]:
    """What it says about the run; nothing about any other."""
    code, output = preflight("--json")
    report = json.JSONDecoder().raw_decode(output)[0]
    assert code == (1 if report["unresumable"] else 0)
    assert {found["run"] for found in report["unresumable"]} <= {str(run.id)}
    return [reason for found in report["unresumable"] for reason in found["reasons"]]


def deploy_charge(version: str = "1") -> None:
    @tool(effect="once", name="test/charge", gated=True, version=version)
    def charge(amount: str) -> str:
        return f"charged {amount}"


def finish(self: Any, run: RunContext) -> object:
    charge = find_tool("test/charge")
    assert charge is not None
    grant = require_approval(run, "charge", tool=charge, args={"amount": "1.00"}, title="Charge")
    run.wait_for_event("go")
    return run.complete(grant.perform(run))


@pytest.fixture
def asking(driver: Driver, deployment: Deployment) -> Run:
    """A run that asks whether it may charge."""
    deploy_charge()
    run = driver.start(deployment.workflow(finish=finish))
    assert driver.go_on(run).reason == "approval"
    return run


@pytest.fixture
def parked(driver: Driver, deployment: Deployment) -> Run:
    run = driver.start(deployment.workflow())
    assert driver.go_on(run).reason == "event"
    return run


def test_nothing_to_say_about_code_that_can_go_on(parked: Run) -> None:
    assert preflight() == (0, "This code can resume all 1 unfinished runs.\n")
    assert preflight("--json") == (0, '{"checked": 1, "unresumable": []}\n')


def test_a_workflow_that_is_gone(parked: Run, deployment: Deployment) -> None:
    deployment.remove_workflow("test/deployed")
    code, output = preflight()
    assert code == 1
    assert output.splitlines() == [
        f"{parked.id} suspended in test/deployed/1 finish: workflow 'test/deployed' is not registered",
        "1 runs: workflow 'test/deployed' is not registered",
        "This code could not resume 1 of 1 unfinished runs.",
    ]


def test_a_phase_that_is_gone(driver: Driver, deployment: Deployment) -> None:
    def act(self: Any, run: RunContext) -> object:
        return run.complete(run.wait_for_event("go"))

    run = driver.start(deployment.workflow(start=lambda self, run: self.act, act=act))
    driver.go_on(run)
    deployment.workflow()
    assert reasons(run) == ["workflow 'test/deployed' has no phase 'act'"]


def test_a_schema_that_is_too_new_or_too_old(parked: Run, deployment: Deployment) -> None:
    deployment.workflow(schema=3, upcasters={2: lambda state: state})
    assert reasons(parked) == ["its schema 1 is older than 3, and 'test/deployed' has no @upcast(from_schema=1)"]
    deployment.workflow(schema=3, upcasters={1: lambda state: state, 2: lambda state: state})
    assert reasons(parked) == []
    RunHead.objects.filter(run=parked).update(schema=4)
    assert reasons(parked) == ["its schema 4 is newer than 3, which the code of 'test/deployed' has"]


def test_an_upcaster_that_raises(parked: Run, deployment: Deployment) -> None:
    deployment.workflow(schema=2, upcasters={1: lambda state: state["missing"]})
    assert reasons(parked) == ["the upcaster from schema 1 raised KeyError: 'missing'"]


def test_a_class_that_is_gone(driver: Driver, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_type", dict(registry._by_type))

    @codec.register("test/line")
    @dataclass
    class Line:
        amount: int

    @tool(effect="once", name="test/order")
    def order() -> Line:
        return Line(3)

    def start(self: Any, run: RunContext) -> object:
        run.history.append(Line(2))
        return self.finish

    def finish(self: Any, run: RunContext) -> object:
        run.step("order", order)
        return run.complete(run.wait_for_event("go"))

    run = driver.start(deployment.workflow(start=start, finish=finish))
    driver.go_on(run)
    assert reasons(run) == []
    del registry._by_name["test/line"]
    assert reasons(run) == [
        "nothing is registered as 'test/line'",
        "what step 'order' recorded: nothing is registered as 'test/line'",
    ]


def test_a_recorded_tool_that_is_gone_or_has_another_effect(driver: Driver, deployment: Deployment) -> None:
    def declare(effect: Any) -> Any:
        @tool(effect=effect, name="test/order")
        def order() -> str:
            return "ordered"

        return order

    def finish(self: Any, run: RunContext) -> object:
        run.step("order", find_tool("test/order"))  # type: ignore[arg-type]
        return run.complete(run.wait_for_event("go"))

    declare("once")
    run = driver.start(deployment.workflow(finish=finish))
    driver.go_on(run)
    assert reasons(run) == []
    declare("read")
    assert reasons(run) == ["tool 'test/order' was 'once' when step 'order' called it, now it is 'read'"]
    deployment.remove_tool("test/order")
    assert reasons(run) == ["tool 'test/order', recorded by step 'order', is not registered"]


def test_a_tool_that_people_are_asked_about(asking: Run, deployment: Deployment) -> None:
    assert reasons(asking) == []
    deploy_charge(version="2")
    assert reasons(asking) == [
        "tool 'test/charge' is not declared as it was at gate 'charge': what people decide there would not count"
    ]
    deployment.remove_tool("test/charge")
    assert reasons(asking) == ["tool 'test/charge', asked about at gate 'charge', is not registered"]


def test_a_tool_that_a_grant_permits(asking: Run, driver: Driver, deployment: Deployment) -> None:
    # druks#632, langgraph#6970: suspended on v1, approved, tool removed by v2
    driver.decide(driver.pending(asking)["charge"])
    deployment.remove_tool("test/charge")
    assert reasons(asking) == ["tool 'test/charge', asked about at gate 'charge', is not registered"]


def test_a_tool_that_was_refused_is_not_missed(asking: Run, driver: Driver, deployment: Deployment) -> None:
    driver.decide(driver.pending(asking)["charge"], "reject")
    deployment.remove_tool("test/charge")
    assert reasons(asking) == []


def test_finished_runs_are_not_looked_at(parked: Run, deployment: Deployment) -> None:
    cancel_run(run_id=parked.id, actor="system")
    deployment.remove_workflow("test/deployed")
    assert preflight() == (0, "This code can resume all 0 unfinished runs.\n")


def test_external_runs_count_where_their_workflow_lives_here(agent: Agent, deployment: Deployment) -> None:
    deploy_charge()

    @entry(external=True)
    def act(self: Any, run: RunContext) -> object: ...

    run = posted(agent, deployment.workflow(act=act), "act", tool="test/charge")
    assert reasons(run) == []
    deployment.workflow()
    assert reasons(run) == ["workflow 'test/deployed' has no phase 'act'"]
    Run.objects.filter(pk=run.pk).update(resume_mode="poll")
    assert reasons(run) == []


def test_many_runs_are_looked_at_in_batches(
    driver: Driver, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.engine.preflight.BATCH", 2)
    name = deployment.workflow()
    runs = {str(driver.start(name).id) for _ in range(5)}
    deployment.remove_workflow(name)
    code, output = preflight()
    assert code == 1
    assert {line.split()[0] for line in output.splitlines() if "queued in" in line} == runs
    assert "5 runs: workflow 'test/deployed' is not registered" in output
