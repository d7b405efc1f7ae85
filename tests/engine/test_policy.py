"""Boundaries that a workflow's policy skips: fewer checkpoints, and nothing is recorded that none leads to."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import connection

from approvals.gates import require_approval
from approvals.models import Approval
from checkpoints.models import Checkpoint
from checkpoints.store import load
from runs.authoring import RunContext, every, workflow
from runs.models import Gate, Run, Step
from runs.services.answering import record_event
from runs.services.controlling import retry_run
from tests.engine.conftest import Driver
from tests.engine.flows import CALLS, SWITCH, look, pay, send
from tests.support.checkpoints import in_its_place

pytestmark = pytest.mark.usefixtures("deployment")  # what a test registers is gone after it

PHASES = 25


@pytest.fixture(autouse=True)
def _no_read_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that takes long is recorded on its own: here none does, however busy the machine."""
    monkeypatch.setattr("runs.engine.effects.LONG_READ_SECONDS", 60.0)


def counting(policy: Any, *, at: dict[int, Any] | None = None) -> str:
    """A workflow that counts to `PHASES`, one phase each, reads and notes; at some numbers it does something else."""

    @workflow("test/counting", checkpoint=policy)
    class Counting:
        def start(self, run: RunContext) -> object:
            n = run.state["n"] = run.state.get("n", 0) + 1
            run.history.append({"before": n})
            run.state[f"seen {n % 3}"] = run.step("look", look, str(n))
            if at and n in at:
                run.state["last"] = at[n](run)
            run.history.append({"after": n})
            return self.start if n < PHASES else self.end

        def end(self, run: RunContext) -> object:
            return run.complete({"n": run.state["n"], "history": len(run.history), "last": run.state.get("last")})

    return "test/counting"


def seqs_and_turns(run: Run) -> list[tuple[int, int]]:
    return list(Checkpoint.objects.filter(run_id=run.pk).order_by("seq").values_list("seq", "turn"))


def history(run: Run) -> list[Any]:
    with connection.cursor() as cursor:
        return [dict(item) for item in load(cursor, run_id=run.pk)[0].history or ()]


EVERYTHING = [{when: n} for n in range(1, PHASES + 1) for when in ("before", "after")]


@pytest.mark.parametrize(
    ("policy", "turns"),
    [
        (every(phases=1), [*range(PHASES + 1), PHASES]),
        (every(phases=10), [0, 10, 20, 25, 25]),
        (every(seconds=3600), [0, 25, 25]),
        (every(seconds=0), [*range(PHASES + 1), PHASES]),
        (every(phases=20, seconds=3600), [0, 20, 25, 25]),
    ],
)
def test_a_policy_decides_which_boundaries_are_saved(driver: Driver, policy: Any, turns: list[int]) -> None:
    run = driver.start(counting(policy))
    head = driver.go_on(run)
    assert (head.status, head.turn, head.phase) == ("completed", PHASES, "end")
    assert driver.result(run) == {"n": PHASES, "history": 2 * PHASES, "last": None}
    assert seqs_and_turns(run) == list(enumerate(turns))
    assert history(run) == EVERYTHING


@pytest.mark.parametrize("phases", [0, -1])
def test_a_policy_makes_sense(phases: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        every(phases=phases)
    with pytest.raises(ValueError, match="or seconds="):
        every()


@pytest.mark.parametrize(
    ("number", "turns"), [(1, [0, 10, 20, 25, 25]), (4, [0, 3, 13, 23, 25, 25]), (11, [0, 10, 20, 25, 25])]
)
def test_an_effect_saves_the_boundary_before_it(driver: Driver, number: int, turns: list[int]) -> None:
    run = driver.start(counting(every(phases=10), at={number: lambda run: run.step("send", send, "x")}))
    assert driver.go_on(run).status == "completed"
    assert seqs_and_turns(run) == list(enumerate(turns))
    assert history(run) == EVERYTHING
    # Every record belongs to a turn that a checkpoint leads to.
    steps = list(Step.objects.filter(run=run).order_by("turn", "ordinal").values_list("turn", "key"))
    assert (number - 1, "look") in steps
    assert (number - 1, "send") in steps
    assert {turn for turn, _ in steps} <= set(turns)


def test_a_gate_saves_the_boundary_before_it(driver: Driver) -> None:
    def ask(run: RunContext) -> Any:
        return require_approval(run, "pay", tool=pay, args={"amount": "1.00"}, title="Pay").perform(run)

    run = driver.start(counting(every(phases=10), at={6: ask, 7: ask}))
    for turn in (5, 6):
        head = driver.go_on(run)
        assert (head.status, head.turn) == ("suspended", turn)
        approval = Approval.objects.get(run=run, status="pending")
        assert approval.turn == turn
        assert Gate.objects.get(run=run, turn=turn).answer is None
        assert seqs_and_turns(run)[-1][1] == turn
        assert history(run) == EVERYTHING[: 2 * turn]
        driver.decide(approval)
    assert driver.go_on(run).status == "completed"
    assert driver.result(run)["last"] == "paid 1.00"
    assert history(run) == EVERYTHING
    assert CALLS["pay 1.00"] == 2


def test_a_phase_that_swallows_what_went_wrong_with_a_checkpoint_loses_none(driver: Driver) -> None:
    """The failure of the one under way comes up when the next one is sent, inside a phase."""

    def swallow(run: RunContext) -> Any:
        with pytest.raises(psycopg.errors.UniqueViolation):
            run.step("send", send, "x")
        Checkpoint.objects.filter(run_id=run.id, seq=1).delete()
        return run.step("send again", send, "x")

    run = driver.start(counting(every(phases=2), at={2: lambda run: in_its_place(run.id), 4: swallow}))
    assert driver.go_on(run).status == "completed"
    assert seqs_and_turns(run)[:3] == [(0, 0), (1, 2), (2, 3)]
    assert history(run) == EVERYTHING


def test_an_event_and_a_timer_save_it_too(driver: Driver) -> None:
    run = driver.start(counting(every(phases=100), at={5: lambda run: run.wait_for_event("go")}))
    assert driver.go_on(run).turn == 4
    record_event(run_id=run.id, name="go", payload="went")
    assert driver.go_on(run).status == "completed"
    assert driver.result(run)["last"] == "went"
    assert history(run) == EVERYTHING


def test_the_end_of_a_slice_loses_nothing(driver: Driver, settings: Any) -> None:
    settings.FERMATA_SLICE_SECONDS = 0
    run = driver.start(counting(every(phases=10)))
    for turn in range(1, PHASES + 1):
        head = driver.go_on(run)
        assert (head.status, head.turn) == ("queued", turn)
    assert driver.go_on(run).status == "completed"
    assert history(run) == EVERYTHING
    assert CALLS["look 1"] == CALLS["look 25"] == 1


def test_a_failure_leaves_the_boundary_before_it(driver: Driver) -> None:
    def stumble(run: RunContext) -> None:
        if SWITCH.get("stumble", True):
            raise RuntimeError("stumbled")

    run = driver.start(counting(every(phases=10), at={8: stumble}))
    head = driver.go_on(run)
    assert (head.status, head.turn) == ("failed", 7)
    SWITCH["stumble"] = False
    retry_run(run_id=run.id, actor="person:1")
    assert driver.go_on(run).status == "completed"
    assert (CALLS["look 7"], CALLS["look 8"]) == (1, 2)
    assert history(run) == EVERYTHING


def test_what_waits_to_be_tried_again_leaves_it_too(driver: Driver) -> None:
    run = driver.start(counting(every(phases=10), at={8: lambda run: run.step("send", send, "x")}))
    SWITCH["send"] = "not performed"
    head = driver.go_on(run)
    assert (head.status, head.turn, head.failures) == ("queued", 7, 1)
    SWITCH.clear()
    type(head).objects.filter(pk=head.pk).update(wake_at=None)
    assert driver.go_on(run).status == "completed"
    assert history(run) == EVERYTHING
