"""What an author cannot get wrong: each rule is refused, with a message that says what to do instead."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from approvals.errors import InvalidAsk
from approvals.gates import require_approval
from approvals.services.asking import Ask
from approvals.services.suspending import suspend
from runs.authoring import RunContext, StepFailed, entry, tool, workflow
from runs.errors import UnknownPhase, UnknownWorkflow
from runs.models import Agent, Run, RunHead
from runs.principals import AgentPrincipal
from runs.services.answering import record_event
from runs.services.starting import PostedSnapshot, Resume, start_run
from runs.states import ResumeMode
from tests.engine.conftest import Driver
from tests.engine.flows import CALLS, look, pay, send

Phase = Callable[[Any, RunContext], object]


pytestmark = pytest.mark.usefixtures("deployment")  # what a test registers is gone after it


def one_phase(start: Phase) -> str:
    """A workflow of one phase; its name."""
    name = f"test/author-{uuid4().hex[:8]}"
    workflow(name)(type("Author", (), {"start": start, "__qualname__": name}))
    return name


def failure(driver: Driver, start: Phase) -> str:
    """Run a phase that breaks a rule; what its run failed with."""
    run = driver.start(one_phase(start))
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    return f"{run.error_type}: {run.error}"


# --- tools -----------------------------------------------------------------------------------------------------


def test_a_step_takes_registered_functions_only(driver: Driver) -> None:
    def refund(order: str) -> None: ...

    error = failure(driver, lambda self, run: run.step("refund", refund, "A-7"))
    assert error.startswith("AuthorError: step 'refund': refund is not a tool; decorate it with @tool(effect=...)")


def test_a_tool_has_no_default_effect() -> None:
    with pytest.raises(TypeError, match="effect"):
        tool()(lambda: None)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="effect must be one of read, keyed, probe, once, not 'write'"):

        @tool(effect="write")  # type: ignore[arg-type]
        def write() -> None: ...


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effect": "keyed", "remembers": timedelta(hours=1)}, "needs a parameter idempotency_key"),
        ({"effect": "probe"}, "effect 'probe' and probe=function go together"),
        ({"effect": "once", "probe": lambda: None}, "effect 'probe' and probe=function go together"),
    ],
)
def test_an_effect_comes_with_what_it_needs(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tool(name="test/wrong", **options)(lambda: None)


def test_a_keyed_tool_says_how_long_its_keys_are_known() -> None:
    with pytest.raises(TypeError, match=r"needs remembers=timedelta\(\.\.\.\)"):

        @tool(effect="keyed")
        def charge(*, idempotency_key: str) -> None: ...


def test_an_async_function_is_no_tool() -> None:
    with pytest.raises(TypeError, match=r"call asyncio.run inside a plain function"):

        @tool(effect="read")
        async def fetch() -> None: ...


def test_a_tool_is_not_called_directly() -> None:
    with pytest.raises(TypeError, match=r"call it as run\.step\(key, look, \.\.\.\) so that it is recorded"):
        look("a")
    with pytest.raises(TypeError, match=r"after require_approval, as grant\.perform\(run\)"):
        pay("1.00")


def test_a_gated_tool_is_not_a_step(driver: Driver) -> None:
    error = failure(driver, lambda self, run: run.step("pay", pay, "1.00"))
    assert "ask with require_approval(run, ...) and call grant.perform(run)" in error
    assert CALLS["pay 1.00"] == 0


def test_only_a_gated_tool_is_asked_about(driver: Driver) -> None:
    error = failure(
        driver, lambda self, run: require_approval(run, "send", tool=send, args={"what": "x"}, title="Send")
    )
    assert "tool= takes a function registered with @tool(gated=True)" in error


def test_only_a_grant_is_performed(driver: Driver) -> None:
    def start(self: Any, run: RunContext) -> object:
        grant = require_approval(run, "pay", tool=pay, args={"amount": "1.00"}, title="Pay")
        return run.complete(grant.perform(run))

    run = driver.start(one_phase(start))
    driver.go_on(run)
    driver.decide(driver.pending(run)["pay"], "reject")
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert "gate 'pay' was rejected: check `if not grant` before grant.perform(run)" in run.error
    assert CALLS["pay 1.00"] == 0


# --- keys ------------------------------------------------------------------------------------------------------


def test_a_key_is_used_once_and_each_tells_a_loop_apart(driver: Driver) -> None:
    error = failure(driver, lambda self, run: [run.step("send", send, what) for what in ("x", "y")])
    assert "step 'send' was already used in this phase; in a loop write each=..." in error
    assert CALLS["send y"] == 0


def test_the_engines_own_keys_are_taken(driver: Driver) -> None:
    assert "are the engine's" in failure(driver, lambda self, run: run.step("gate:pay", send, "x"))


@pytest.mark.parametrize("key", ["", "k" * 151, 7])
def test_a_key_is_a_short_text(driver: Driver, key: Any) -> None:
    assert "a key is a text of 1 to 150 characters" in failure(driver, lambda self, run: run.step(key, send, "x"))


# --- phases ----------------------------------------------------------------------------------------------------


def test_an_async_phase_is_refused_at_registration() -> None:
    with pytest.raises(TypeError, match="phase start must be a plain method, not async or a generator"):

        @workflow("test/async")
        class Async:
            async def start(self, run: RunContext) -> object: ...


def test_a_helper_method_is_told_from_a_phase_by_its_name() -> None:
    with pytest.raises(TypeError, match="name helper methods with a leading underscore"):

        @workflow("test/helper")
        class Helper:
            def start(self, run: RunContext) -> object: ...

            def total(self, orders: list[str]) -> int: ...


def test_a_workflow_begins_somewhere() -> None:
    with pytest.raises(TypeError, match=r"needs a phase 'start', or one marked @entry\(external=True\)"):

        @workflow("test/no-start")
        class NoStart:
            def act(self, run: RunContext) -> object: ...


def test_a_name_belongs_to_one_class() -> None:
    with pytest.raises(ValueError, match=r"workflow test/gate: already registered by tests\.engine\.flows\.Gate"):

        @workflow("test/gate")
        class Another:
            def start(self, run: RunContext) -> object: ...


def test_another_thread_is_refused(driver: Driver) -> None:
    caught: list[Exception] = []

    def elsewhere(run: RunContext) -> None:
        for use in (
            lambda: run.step("send", send, "x"),
            lambda: run.history.append("x"),
            lambda: run.uuid("x"),
            run.complete,
        ):
            try:
                use()
            except Exception as error:
                caught.append(error)

    def start(self: Any, run: RunContext) -> object:
        thread = threading.Thread(target=elsewhere, args=(run,))
        thread.start()
        thread.join()
        return run.complete()

    assert driver.go_on(driver.start(one_phase(start))).status == "completed"
    assert len(caught) == 4
    assert all("only the thread that runs the phase may use it" in str(error) for error in caught)
    assert CALLS["send x"] == 0


def test_a_workflow_object_keeps_nothing_between_phases(driver: Driver) -> None:
    def start(self: Any, run: RunContext) -> object:
        self.order = "A-7"
        return run.complete()

    error = failure(driver, start)
    assert "keeps nothing between phases; put it into run.state['order']" in error


def test_every_phase_gets_a_fresh_object(driver: Driver) -> None:
    seen: list[object] = []

    @workflow("test/fresh")
    class Fresh:
        def start(self, run: RunContext) -> object:
            seen.append(self)
            return self.start if len(seen) < 3 else run.complete()

    assert driver.go_on(driver.start("test/fresh")).status == "completed"
    assert len({id(one) for one in seen}) == 3

    with pytest.raises(TypeError, match="no __init__; a fresh object is made for every phase"):

        @workflow("test/init")
        class Init:
            def __init__(self) -> None: ...

            def start(self, run: RunContext) -> object: ...


def test_a_phase_ends_by_naming_the_next_one(driver: Driver) -> None:
    error = failure(driver, lambda self, run: None)
    assert "phase start returned NoneType: end it with `return self.another_phase` or `return run.complete" in error


def test_nothing_follows_the_completion(driver: Driver) -> None:
    def start(self: Any, run: RunContext) -> object:
        run.complete("done")
        return run.step("after", send, "after")

    assert "nothing may follow run.complete(...): return its value" in failure(driver, start)
    assert CALLS["send after"] == 0


def test_a_completion_is_not_dropped_for_another_phase(driver: Driver) -> None:
    @workflow("test/dropped")
    class Dropped:
        def start(self, run: RunContext) -> object:
            run.complete("done")
            return self.again

        def again(self, run: RunContext) -> object:
            return run.complete("done twice")

    run = driver.start("test/dropped")
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert "return the value of this phase's own run.complete(...)" in run.error


# --- state and stable values -----------------------------------------------------------------------------------


def test_a_container_under_two_paths_is_refused_with_both(driver: Driver) -> None:
    @workflow("test/shared")
    class Shared:
        def start(self, run: RunContext) -> object:
            basket = {"items": ["A-7"]}
            run.state["basket"] = basket
            run.state["order"] = {"basket": basket}
            return self.start

    run = driver.start("test/shared")
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert "state.order.basket: is the same object as state.basket" in run.error
    assert "copy it" in run.error


def test_a_time_without_a_zone_is_refused(driver: Driver) -> None:
    error = failure(driver, lambda self, run: run.sleep_until(run.now().replace(tzinfo=None)))
    assert "the time needs a time zone; start from run.now()" in error


def test_arguments_that_change_between_tries_name_the_stable_ones(driver: Driver) -> None:
    def start(self: Any, run: RunContext) -> object:
        run.step("send", send, uuid4().hex)
        return run.complete(run.wait_for_event("go"))

    run = driver.start(one_phase(start))
    driver.go_on(run)
    record_event(run_id=run.id, name="go", payload=None)
    head = driver.go_on(run)
    assert head.status == "blocked"
    assert "take times from run.now() and random values from run.uuid(key)" in head.detail


def test_stable_values_are_the_same_at_every_try(driver: Driver) -> None:
    seen: list[object] = []

    def start(self: Any, run: RunContext) -> object:
        seen.append((run.now(), run.now(), run.uuid("a"), run.uuid("b")))
        run.step("send", send, run.uuid("a").hex)
        return run.complete(run.wait_for_event("go"))

    run = driver.start(one_phase(start))
    driver.go_on(run)
    record_event(run_id=run.id, name="go", payload=None)
    assert driver.go_on(run).status == "completed"
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 4  # type: ignore[call-overload]


# --- how much --------------------------------------------------------------------------------------------------


def test_many_steps_in_one_turn_are_worth_a_warning(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    def start(self: Any, run: RunContext) -> object:
        for n in range(201):
            run.step("look", look, "a", each=n)
        return run.complete()

    with caplog.at_level(logging.WARNING, logger="runs.engine"):
        assert driver.go_on(driver.start(one_phase(start))).status == "completed"
    warnings = [record.getMessage() for record in caplog.records if "many steps" in record.getMessage()]
    assert len(warnings) == 1
    assert "end it sooner" in warnings[0]


def test_too_many_steps_in_one_turn_fail_the_run(driver: Driver) -> None:
    def start(self: Any, run: RunContext) -> object:
        for n in range(1_001):
            run.step("look", look, "a", each=n)
        return run.complete()

    error = failure(driver, start)
    assert "more than 1000 steps in one phase: end the phase and let it name itself again" in error
    assert CALLS["look a"] == 1_000


# --- from outside ----------------------------------------------------------------------------------------------


def posted(agent: Agent, workflow: str, phase: str, tool: str = "test/pay") -> Run:
    return suspend(
        by=AgentPrincipal(agent, None),  # type: ignore[arg-type]
        external_id="",
        title="From outside",
        snapshot=PostedSnapshot({}, [], None, [], workflow, 1),
        resume=Resume(ResumeMode.WORKFLOW, workflow, phase),
        asks=[Ask(key="pay", tool=tool, args='{"amount": "1.00"}', title="Pay")],
    ).run


def test_an_external_agent_enters_only_where_a_phase_lets_it_in(driver: Driver, agent: Agent) -> None:
    @workflow("test/entries")
    class Entries:
        def start(self, run: RunContext) -> object: ...

        @entry(external=True)
        def act(self, run: RunContext) -> object: ...

    with pytest.raises(UnknownPhase, match=r"cannot enter 'start' of 'test/entries'.*@entry\(external=True\): act"):
        posted(agent, "test/entries", "start")
    with pytest.raises(UnknownWorkflow, match="no workflow 'test/nowhere'"):
        posted(agent, "test/nowhere", "act")
    with pytest.raises(InvalidAsk, match="is not a gated tool of this deployment"):
        posted(agent, "test/entries", "act", tool="test/send")
    assert not Run.objects.exists()
    assert RunHead.objects.get(run=posted(agent, "test/entries", "act")).phase == "act"


def test_a_hosted_run_begins_at_start_and_nowhere_else(driver: Driver, agent: Agent) -> None:
    @workflow("test/outside-only")
    class OutsideOnly:
        @entry(external=True)
        def act(self, run: RunContext) -> object: ...

    with pytest.raises(UnknownPhase):
        start_run(agent=agent, workflow="test/outside-only", input=None)


def test_a_refusal_raised_by_a_phase_itself_is_told_as_it_is(driver: Driver) -> None:
    def start(self: Any, run: RunContext) -> object:
        raise StepFailed("the input needs an order")

    assert failure(driver, start) == "StepFailed: the input needs an order"
