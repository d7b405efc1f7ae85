"""What a call returns or says and cannot be saved: the call is never repeated for it, and no credential is kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from approvals.errors import VoteInvalid
from approvals.gates import require_approval
from approvals.models import Approval, Grant
from approvals.services.doubt import resolve_in_doubt
from checkpoints import codec
from runs.authoring import DidNotHappen, Happened, NotPerformed, RunContext, StepFailed, Tool, tool, workflow
from runs.bodies import opened, outcome_place
from runs.models import Step
from runs.services.answering import record_event
from runs.services.controlling import retry_run
from tests.checkpoints.credentials.samples import SAMPLES
from tests.engine.conftest import Driver
from tests.engine.flows import CALLS, SWITCH

TOKEN = SAMPLES["github-token"]
HIDDEN = "[redacted: github-token]"

pytestmark = pytest.mark.usefixtures("deployment")  # what a test registers is gone after it


class Declined(StepFailed):
    """A tool's own failure, which knows nothing of the engine's."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


def make_tool(effect: str, returns: Callable[[], Any], *, gated: bool = False, **options: Any) -> Tool:
    def plain(what: str) -> Any:
        CALLS["made"] += 1
        return returns()

    def keyed(what: str, *, idempotency_key: str) -> Any:
        return plain(what)

    if effect == "keyed":
        options["remembers"] = timedelta(hours=1)
    name = f"test/unsaveable-{uuid4().hex[:8]}"
    return tool(effect=effect, name=name, gated=gated, **options)(keyed if effect == "keyed" else plain)  # type: ignore[arg-type]


def raising(error: Exception) -> Callable[[], Any]:
    def raise_it() -> Any:
        raise error

    return raise_it


def tell(failure: StepFailed) -> list[str]:
    return [failure.kind, failure.type_name, failure.message, str(failure)]


def start(driver: Driver, phase: Callable[[Any, RunContext], object]) -> Any:
    name = f"test/author-{uuid4().hex[:8]}"
    workflow(name)(type("Author", (), {"start": phase, "__qualname__": name}))
    return driver.start(name)


def told(driver: Driver, made: Tool) -> list[list[str]]:
    """How the step failed, at the first try and when it was met again."""
    seen = []

    def phase(self: Any, run: RunContext) -> object:
        try:
            run.step("call", made, "x")
        except StepFailed as failure:
            seen.append(tell(failure))
        return run.complete(run.wait_for_event("go"))

    run = start(driver, phase)
    assert driver.go_on(run).reason == "event"
    record_event(run_id=run.id, name="go", payload=None)
    assert driver.go_on(run).status == "completed"
    return seen


@pytest.mark.parametrize("effect", ["keyed", "probe", "once"])
@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"token": [TOKEN]}, "result of call.token[0]: looks like a credential (github-token)"),
        ({"when": float("nan")}, "result of call.when: is not a finite number"),
        ({"lines": object()}, "result of call.lines: builtins.object is not registered"),
    ],
)
def test_the_call_was_made_and_is_not_made_again(driver: Driver, effect: str, result: Any, reason: str) -> None:
    options = {"probe": lambda what, idempotency_key: DidNotHappen()} if effect == "probe" else {}
    made = make_tool(effect, lambda: result, **options)
    run = start(driver, lambda self, run: run.complete(run.step("call", made, "x")))

    for _ in range(3):  # an operator's retry meets it again
        assert driver.go_on(run).status == "failed"
        run.refresh_from_db()
        assert run.error.startswith(f"the call was made, and what it returned cannot be saved: {reason}")
        assert TOKEN not in run.error + run.traceback
        assert Step.objects.get(run=run).state == "failed"
        retry_run(run_id=run.id, actor="person:1")
    assert CALLS["made"] == 1


def test_the_phase_can_go_on_from_it(driver: Driver) -> None:
    first, again = told(driver, make_tool("once", lambda: TOKEN))
    assert first == again
    assert first[:2] == ["unsaveable", "HoldsCredential"]
    assert CALLS["made"] == 1


def test_a_result_that_is_too_large_is_known_too(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_BYTES", 1_000)
    first, again = told(driver, make_tool("once", lambda: "x" * 1_001))
    assert first == again
    assert "the result of call holds 1004 bytes; the limit is 1000" in first[2]
    assert CALLS["made"] == 1


def test_an_argument_that_is_too_large_to_be_saved_fails_once(driver: Driver, settings: Any) -> None:
    """pydantic-ai#7164: an oversized tool argument was tried again for ever."""
    settings.FERMATA_SNAPSHOT_LIMIT = 1_000
    made = make_tool("once", lambda: "done", gated=True)

    def phase(self: Any, run: RunContext) -> object:
        run.state["what"] = uuid4().hex * 100
        return run.complete(require_approval(run, "ask", tool=made, args={"what": "x"}, title="Do").perform(run))

    run = start(driver, phase)
    head = driver.go_on(run)
    assert (head.status, head.failures, head.crashes) == ("failed", 0, 0)
    run.refresh_from_db()
    assert "1000" in run.error
    assert driver.go_on(run).epoch == head.epoch == 1  # nobody tries it again by themselves
    assert driver.pending(run) == {}
    assert CALLS["made"] == 0


def test_what_a_probe_answers_can_be_unsaveable_too(driver: Driver) -> None:
    made = make_tool(
        "probe",
        raising(RuntimeError("the line went dead")),
        probe=lambda what, idempotency_key: Happened(TOKEN),
        deadline=timedelta(seconds=-10),
    )
    seen = []

    def phase(self: Any, run: RunContext) -> object:
        try:
            return run.complete(run.step("call", made, "x"))
        except StepFailed as failure:
            seen.append(failure.kind)
            return run.complete("known")

    run = start(driver, phase)
    head = driver.go_on(run)
    assert head.status == "suspended"
    type(head).objects.filter(pk=head.pk).update(status="queued", reason="")
    assert driver.go_on(run).status == "completed"
    assert seen == ["unsaveable"]
    assert CALLS["made"] == 1


def test_a_grant_is_reported_as_used(driver: Driver) -> None:
    made = make_tool("once", lambda: TOKEN, gated=True)

    def phase(self: Any, run: RunContext) -> object:
        return run.complete(require_approval(run, "ask", tool=made, args={"what": "x"}, title="Do").perform(run))

    run = start(driver, phase)
    driver.go_on(run)
    driver.decide(driver.pending(run)["ask"])
    assert driver.go_on(run).status == "failed"
    retry_run(run_id=run.id, actor="person:1")
    assert driver.go_on(run).status == "failed"
    grant = Grant.objects.get(approval__run=run)
    assert grant.status == "failed"
    assert "the call was made" in grant.outcome
    assert TOKEN not in grant.outcome
    assert CALLS["made"] == 1


@pytest.mark.parametrize("effect", ["read", "keyed", "once"])
@pytest.mark.parametrize("error", [StepFailed, Declined])
def test_a_failure_says_the_same_live_and_met_again(driver: Driver, effect: str, error: type[StepFailed]) -> None:
    made = make_tool(effect, raising(error(f"no \ud800\x00 for {TOKEN}")))
    first, again = told(driver, made)
    text = f"no \\ud800\\x00 for {HIDDEN}"
    assert first == again == ["refused", "StepFailed", text, text]
    assert CALLS["made"] == 1


def test_what_a_read_raises_can_be_kept_in_the_history(driver: Driver) -> None:
    made = make_tool("read", raising(OSError(f"GET https://api.example/?q={TOKEN} \ud800")))

    def phase(self: Any, run: RunContext) -> object:
        try:
            run.step("call", made, "x")
        except StepFailed as failure:
            run.history.append({"role": "tool", "content": failure.message})
        return run.complete(run.history[0]["content"])

    run = start(driver, phase)
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == f"GET https://api.example/?q={HIDDEN} \\ud800"


def test_not_performed_is_told_without_what_it_held(driver: Driver) -> None:
    made = make_tool("keyed", raising(NotPerformed(f"503 for {TOKEN} \ud800\x00")))
    run = start(driver, lambda self, run: run.complete(run.step("call", made, "x")))
    head = driver.go_on(run)
    assert head.status == "queued"
    assert head.detail == f"trying call again: 503 for {HIDDEN} \\ud800\\x00"
    step = Step.objects.get(run=run)
    assert step.state == "not_performed"
    told = opened(step.outcome or b"", outcome_place(run.pk, 0, "call"), what="outcome")
    assert told["why"] == f"503 for {HIDDEN} \\ud800\\x00"


def test_an_unknown_outcome_is_told_without_what_it_held(driver: Driver) -> None:
    made = make_tool("keyed", raising(RuntimeError(f"reset by {TOKEN} \ud800\x00")))
    run = start(driver, lambda self, run: run.complete(run.step("call", made, "x")))
    assert driver.go_on(run).detail == f"trying call again: RuntimeError: reset by {HIDDEN} \\ud800\\x00"


def test_what_a_person_says_that_a_call_returned_is_looked_at(driver: Driver, reviewer: User) -> None:
    run = driver.start("test/mail")
    SWITCH["mail"] = "break"
    driver.go_on(run)
    asked = Approval.objects.get(run=run)
    answer = {"approval_id": asked.pk, "person": reviewer, "answer": "happened", "review": asked.review}
    with pytest.raises(VoteInvalid) as refused:
        resolve_in_doubt(**answer, outcome={"receipt": [TOKEN]})
    assert refused.value.errors == [
        ("outcome/receipt/0", "looks like a credential (github-token): send a reference to it instead")
    ]
    resolve_in_doubt(**answer, outcome={"receipt": "r-1"})
    driver.go_on(run)
    assert driver.result(run) == {"receipt": "r-1"}


def test_a_run_fails_without_what_its_error_held(driver: Driver) -> None:
    def phase(self: Any, run: RunContext) -> object:
        raise RuntimeError(f"no entry with {TOKEN}")

    run = start(driver, phase)
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert run.error == f"no entry with {HIDDEN}"
    assert HIDDEN in run.traceback
    assert TOKEN not in run.traceback
