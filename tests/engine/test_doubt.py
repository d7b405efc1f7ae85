"""Calls that raised: nobody knows whether they happened, and they may still arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.errors import NotAllowed
from approvals.models import Approval
from approvals.services.doubt import resolve_in_doubt
from runs.authoring import DidNotHappen, Happened, tool
from runs.models import Run
from runs.services.sweeping import sweep
from tests.engine.conftest import Driver
from tests.engine.deploys import Deployment

MoveClock = Callable[[timedelta], None]
DEADLINE = timedelta(seconds=60)


class Outside:
    """The other side of a call: it fails the first time, having done the work or not."""

    def __init__(self, *, does_it: bool) -> None:
        self.calls: Counter[str] = Counter()
        self.done = 0
        self._does_it = does_it

    def call(self) -> str:
        self.calls["call"] += 1
        if self.calls["call"] == 1:
            self.done += self._does_it
            raise TimeoutError("no answer")
        self.done += 1
        return "receipt"

    def probe(self, *, idempotency_key: str) -> Happened | DidNotHappen:
        self.calls["probe"] += 1
        return Happened("receipt") if self.done else DidNotHappen()


def started(driver: Driver, deployment: Deployment, outside: Outside, effect: Any) -> Run:
    options = {"probe": outside.probe} if effect == "probe" else {}

    @tool(effect=effect, name="test/outside", deadline=DEADLINE, **options)
    def call() -> str:
        return outside.call()

    return driver.start(deployment.workflow(start=lambda self, run: run.complete(run.step("call", call))))


@pytest.mark.parametrize("does_it", [True, False])
def test_a_probe_asks_once_the_call_is_over(
    driver: Driver, deployment: Deployment, move_clock: MoveClock, does_it: bool
) -> None:
    outside = Outside(does_it=does_it)
    run = started(driver, deployment, outside, "probe")
    head = driver.go_on(run)
    assert (head.status, head.reason) == ("suspended", "settling")
    assert sweep().woken == 0
    assert outside.calls["probe"] == 0

    move_clock(DEADLINE + timedelta(seconds=6))
    assert sweep().woken == 1
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == "receipt"
    assert (outside.calls["probe"], outside.done) == (1, 1)
    assert not Approval.objects.exists()


@pytest.mark.parametrize("does_it", [True, False])
def test_about_a_call_that_nobody_can_tell_a_person_is_asked(
    driver: Driver, deployment: Deployment, move_clock: MoveClock, reviewer: User, does_it: bool
) -> None:
    outside = Outside(does_it=does_it)
    run = started(driver, deployment, outside, "once")
    head = driver.go_on(run)
    assert (head.status, head.reason) == ("suspended", "in_doubt")
    question = Approval.objects.get(run=run, kind="in_doubt")
    if does_it:
        answer = {"answer": "happened", "outcome": "receipt"}
    else:
        answer = {"answer": "not_happened"}
        with pytest.raises(NotAllowed, match="may still arrive"):
            resolve_in_doubt(approval_id=question.id, person=reviewer, review=question.review, **answer)
        move_clock(DEADLINE + timedelta(seconds=6))
    resolve_in_doubt(approval_id=question.id, person=reviewer, review=question.review, **answer)
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == "receipt"
    assert outside.done == 1
