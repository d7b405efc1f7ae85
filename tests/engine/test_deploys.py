"""Code changes under runs that are parked: old snapshots, missing parts, and who waits for which build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from approvals.gates import require_approval
from approvals.models import Approval, AuditEvent
from checkpoints import codec
from checkpoints.codec import registry
from runs.authoring import RunContext, tool
from runs.models import Build, Run, RunHead
from runs.services.answering import record_event
from runs.services.controlling import retry_run
from runs.services.sweeping import sweep
from tests.engine.conftest import Driver
from tests.engine.deploys import Deployment, finish

MoveClock = Callable[[timedelta], None]


def parked(driver: Driver, workflow: str) -> Run:
    run = driver.start(workflow)
    assert driver.go_on(run).reason == "event"
    return run


def head_of(run: Run) -> RunHead:
    return RunHead.objects.get(run=run)


def let_go(run: Run) -> None:
    assert record_event(run_id=run.id, name="go", payload=None)


# --- upcasters -------------------------------------------------------------------------------------------------


def test_an_old_snapshot_is_resumed_by_new_code(driver: Driver, deployment: Deployment) -> None:
    # dbos-transact-py#702: parked before a deploy that changed the code
    run = parked(driver, deployment.workflow(schema=1))
    deployment.workflow(
        schema=3,
        upcasters={
            1: lambda state: {"greetings": [state["greeting"]]},
            2: lambda state: {**state, "count": len(state["greetings"])},
        },
    )
    let_go(run)
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"greetings": ["hello"], "count": 1}


def test_the_next_checkpoint_is_of_the_new_schema(driver: Driver, deployment: Deployment) -> None:
    def again(self: Any, run: RunContext) -> object:
        run.wait_for_event("again")
        return run.complete(run.state)

    def finish(self: Any, run: RunContext) -> object:
        run.wait_for_event("go")
        return self.again

    run = parked(driver, deployment.workflow(schema=1))
    deployment.workflow(schema=2, upcasters={1: lambda state: {"new": True}}, finish=finish, again=again)
    let_go(run)
    head = driver.go_on(run)
    assert (head.phase, head.schema) == ("again", 2)
    # the upcaster is not needed any more
    deployment.workflow(schema=2, finish=finish, again=again)
    record_event(run_id=run.id, name="again", payload=None)
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"new": True}


@pytest.mark.parametrize(
    ("upcaster", "why"),
    [
        (lambda state: state["missing"], "the upcaster from schema 1 raised KeyError"),
        (lambda state: state.update(new=True), "the upcaster from schema 1 returned NoneType: return the state"),
    ],
)
def test_an_upcaster_that_breaks_blocks_the_run_and_loses_nothing(
    driver: Driver, deployment: Deployment, upcaster: Callable[[Any], Any], why: str
) -> None:
    run = parked(driver, deployment.workflow(schema=1))
    deployment.build("two")
    deployment.workflow(schema=2, upcasters={1: upcaster})
    let_go(run)
    head = driver.go_on(run)
    assert (head.status, head.detail.partition(": ")[0]) == ("blocked", "cannot rehydrate")
    assert why in head.detail

    deployment.build("three")
    deployment.workflow(schema=2, upcasters={1: lambda state: {**state, "new": True}})
    sweep()
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"greeting": "hello", "new": True}


# --- what is missing -------------------------------------------------------------------------------------------


def test_a_phase_that_is_gone_blocks_until_it_is_back(driver: Driver, deployment: Deployment) -> None:
    # langflow PR#15241: retry works after a rollback
    def act(self: Any, run: RunContext) -> object:
        run.wait_for_event("go")
        return run.complete("done")

    deployment.build("one")
    run = parked(driver, deployment.workflow(start=lambda self, run: self.act, act=act))
    deployment.build("two")
    deployment.workflow()
    let_go(run)
    head = driver.go_on(run)
    assert (head.status, head.detail) == (
        "blocked",
        "cannot rehydrate: workflow 'test/deployed' has no phase 'act'",
    )
    sweep()
    assert head_of(run).status == "blocked"  # by this very build

    deployment.build("one")
    deployment.workflow(start=lambda self, run: self.act, act=act)
    assert sweep().unblocked == 1
    assert driver.go_on(run).status == "completed"


def test_a_class_that_is_gone_blocks_and_never_comes_back_as_something_else(
    driver: Driver, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # langgraph#6970, langgraph#7066
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_type", dict(registry._by_type))

    @codec.register("test/line")
    @dataclass
    class Line:
        amount: int

    def start(self: Any, run: RunContext) -> object:
        run.state["line"] = Line(3)
        return self.finish

    deployment.build("one")
    run = parked(driver, deployment.workflow(start=start))
    deployment.build("two")
    del registry._by_name["test/line"]
    let_go(run)
    head = driver.go_on(run)
    assert head.status == "blocked"
    assert "nothing is registered as 'test/line'" in head.detail

    codec.register("test/line")(Line)
    deployment.build("three")
    sweep()
    assert driver.go_on(run).status == "completed"
    assert driver.result(run)["line"] == Line(3)


def test_approved_under_code_that_lost_a_class_and_a_tool(
    driver: Driver, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    # C16: suspended on v1, v2 renames the class and removes the tool, approved, rolled back
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_type", dict(registry._by_type))
    charged: list[int] = []

    @codec.register("test/line")
    @dataclass
    class Line:
        amount: int

    def deploy_v1() -> str:
        @tool(effect="once", gated=True, name="test/charge")
        def charge(amount: int) -> str:
            charged.append(amount)
            return "charged"

        def start(self: Any, run: RunContext) -> object:
            run.state["line"] = Line(3)
            return self.finish

        def finish(self: Any, run: RunContext) -> object:
            args = {"amount": run.state["line"].amount}
            return run.complete(require_approval(run, "charge", tool=charge, args=args, title="Charge").perform(run))

        deployment.build("one")
        return deployment.workflow(start=start, finish=finish)

    run = driver.start(deploy_v1())
    assert driver.go_on(run).reason == "approval"
    deployment.build("two")
    deployment.remove_tool("test/charge")
    del registry._by_name["test/line"]
    codec.register("test/renamed")(Line)
    approval = driver.decide(driver.pending(run)["charge"])
    for _ in range(2):
        head = driver.go_on(run)
        assert head.status == "blocked"
        assert head.detail.startswith("cannot rehydrate: ")
        assert "nothing is registered as 'test/line'" in head.detail
        retry_run(run_id=run.id, actor="person:1")
    assert driver.go_on(run).status == "blocked"
    assert (approval.status, charged) == ("approved", [])

    deploy_v1()
    del registry._by_type[Line]
    codec.register("test/line")(Line)
    retry_run(run_id=run.id, actor="person:1")
    assert driver.go_on(run).status == "completed"
    assert charged == [3]
    assert list(Approval.objects.filter(run=run)) == [approval]


def test_a_recorded_outcome_of_a_class_that_is_gone_blocks(
    driver: Driver, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_type", dict(registry._by_type))

    @codec.register("test/receipt")
    @dataclass
    class Receipt:
        number: int

    @tool(effect="once", name="test/issue")
    def issue() -> Receipt:
        return Receipt(7)

    def finish(self: Any, run: RunContext) -> object:
        receipt = run.step("issue", issue)
        run.wait_for_event("go")
        return run.complete(receipt)

    run = parked(driver, deployment.workflow(finish=finish))
    del registry._by_name["test/receipt"]
    let_go(run)
    head = driver.go_on(run)
    assert head.status == "blocked"
    assert "what step 'issue' recorded: nothing is registered as 'test/receipt'" in head.detail


# --- several builds at once ------------------------------------------------------------------------------------


def test_a_snapshot_that_is_too_new_is_left_to_the_build_that_can_take_it(
    driver: Driver, deployment: Deployment, move_clock: MoveClock
) -> None:
    deployment.build("new")
    run = driver.start(deployment.workflow(schema=2))
    sweep()  # says that the new build is alive

    deployment.build("old")
    deployment.workflow(schema=1)
    move_clock(timedelta(seconds=20))
    assert sweep().blocked == 0
    assert driver.go_on(run).status == "queued"

    move_clock(timedelta(seconds=61))  # the new build has not been seen since
    assert sweep().blocked == 1
    head = head_of(run)
    assert head.detail == "cannot rehydrate: no deployed code has workflow test/deployed schema 2"

    deployment.build("new")
    deployment.workflow(schema=2)
    assert sweep().unblocked == 1
    assert driver.go_on(run).reason == "event"
    assert set(Build.objects.values_list("name", flat=True)) == {"old", "new"}


def other_branch(self: Any, run: RunContext) -> object:
    """What a changed phase does: it diverges from what was recorded."""
    run.wait_for_event("other")
    return run.complete("other")


def test_two_builds_at_once_do_not_pass_a_diverged_run_to_and_fro(
    driver: Driver, deployment: Deployment, move_clock: MoveClock
) -> None:
    deployment.build("old")
    run = parked(driver, deployment.workflow())
    sweep()
    let_go(run)
    move_clock(timedelta(seconds=10))
    blocked = AuditEvent.objects.filter(chain=f"run:{run.id}", type="run.blocked")

    unblocked: list[str] = []
    for _ in range(5):
        for name, phase in (("new", other_branch), ("old", finish)):
            deployment.build(name)
            deployment.workflow(finish=phase)
            if sweep().unblocked:
                unblocked.append(name)
            if name == "new":
                driver.go_on(run)
            move_clock(timedelta(seconds=2))
    assert (head_of(run).status, head_of(run).build) == ("blocked", "new")
    assert (unblocked, blocked.count()) == ([], 1)

    retry_run(run_id=run.id, actor="person:1")  # a person may, at any time
    assert driver.go_on(run).status == "completed"  # by the old build


def test_a_newer_build_tries_again_at_once_and_an_older_one_when_the_newer_is_gone(
    driver: Driver, deployment: Deployment, move_clock: MoveClock
) -> None:
    def say(name: str, phase: Any) -> int:
        deployment.build(name)
        deployment.workflow(finish=phase)
        return sweep().unblocked

    deployment.build("one")
    first, second = (parked(driver, deployment.workflow()) for _ in range(2))
    say("one", finish)
    move_clock(timedelta(seconds=30))
    say("two", other_branch)
    for run in (first, second):
        let_go(run)
        assert driver.go_on(run).status == "blocked"

    assert say("one", finish) == 0  # both are at work
    move_clock(timedelta(seconds=2))
    assert say("three", finish) == 2  # a deploy, while both of the others are still at work
    assert driver.go_on(first).status == "completed"

    say("two", other_branch)
    assert driver.go_on(second).status == "blocked"
    move_clock(timedelta(seconds=50))
    assert say("one", finish) == 0  # always there, so it is the oldest of them
    move_clock(timedelta(seconds=11))
    assert say("one", finish) == 1  # the newer one has not been seen for a minute
    assert driver.go_on(second).status == "completed"


def test_a_rollback_tries_again_although_the_build_that_blocked_is_still_there(
    driver: Driver, deployment: Deployment, move_clock: MoveClock
) -> None:
    deployment.build("one")
    run = parked(driver, deployment.workflow())
    sweep()
    move_clock(timedelta(minutes=5))
    deployment.build("two")
    deployment.workflow(finish=other_branch)
    sweep()
    let_go(run)
    assert driver.go_on(run).status == "blocked"

    move_clock(timedelta(seconds=2))
    deployment.build("one")
    deployment.workflow()
    assert sweep().unblocked == 1
    assert driver.go_on(run).status == "completed"


def test_a_workflow_that_no_build_has_blocks_and_says_so(
    driver: Driver, deployment: Deployment, move_clock: MoveClock
) -> None:
    # druks#632, dbos-transact-py#702: approval must resume it, or say why it cannot
    deployment.build("one")
    run = parked(driver, deployment.workflow())
    deployment.build("two")
    deployment.remove_workflow("test/deployed")
    let_go(run)
    assert driver.go_on(run).status == "queued"
    move_clock(timedelta(seconds=61))
    sweep()
    head = head_of(run)
    assert (head.status, head.build) == ("blocked", "two")
    assert "no deployed code has workflow test/deployed schema 1" in head.detail

    deployment.build("three")
    deployment.workflow()
    sweep()
    assert driver.go_on(run).status == "completed"
