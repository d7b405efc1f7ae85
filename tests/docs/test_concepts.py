"""The code in docs/concepts.md does what the page says."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from types import ModuleType

import pytest

from approvals.models import Approval
from approvals.services.asking import Ask
from approvals.services.suspending import suspend
from checkpoints.codec import registry
from runs.models import Agent, RunHead
from runs.principals import AgentPrincipal
from runs.services.answering import record_event
from runs.services.starting import PostedSnapshot, Resume
from runs.services.sweeping import sweep
from runs.states import ResumeMode
from tests.docs import shop
from tests.engine.conftest import Driver, driver
from tests.engine.deploys import Deployment, deployment
from tests.support.processes import ROOT

__all__ = ["deployment", "driver"]

MoveClock = Callable[[timedelta], None]
PAGE = (ROOT / "docs" / "concepts.md").read_text()


def code(page: str) -> str:
    """The Python of (a part of) the page, with the page's line numbers."""
    lines, inside = [], False
    for line in page.splitlines():
        fence = line.startswith("```")
        inside = line == "```python" if fence else inside
        lines.append(line if inside and not fence else "")
    return "\n".join(lines)


class Page(ModuleType):
    """The page as a module, up to a heading."""

    def read(self, *, until: str | None = None, since: str = "# Concepts") -> None:
        start = PAGE.index(f"{since}\n")
        end = PAGE.index(f"\n## {until}\n") if until else len(PAGE)
        skipped = "\n" * PAGE.count("\n", 0, start)
        exec(compile(skipped + code(PAGE[start:end]), "docs/concepts.md", "exec"), vars(self))


@pytest.fixture
def page(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Page:
    """The page's module as it is before the deploy."""
    shop.reset()
    page = Page("concepts")
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "concepts", page)
    monkeypatch.setattr(registry, "_by_name", dict(registry._by_name))
    monkeypatch.setattr(registry, "_by_type", dict(registry._by_type))
    page.read(until="Deploys")
    return page


@pytest.mark.usefixtures("page")
def test_a_refund_is_asked_for_and_made_once(driver: Driver) -> None:
    run = driver.start("return-agent", {"order": "A-7"})
    head = driver.go_on(run)
    assert (head.status, head.reason, head.phase) == ("suspended", "approval", "decide")
    driver.decide(driver.pending(run)["refund"])
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"receipt": "refunded 49.90 for A-7"}
    assert (shop.CALLS["order"], shop.CALLS["refund"]) == (1, 1)
    assert shop.MAILS == [("ada@example.org", "Your money is on its way.")]


@pytest.mark.usefixtures("page")
def test_a_refund_that_is_rejected_is_not_made(driver: Driver) -> None:
    run = driver.start("return-agent", {"order": "A-7"})
    driver.go_on(run)
    driver.decide(driver.pending(run)["refund"], "reject", message="too late")
    assert driver.go_on(run).status == "completed"
    assert shop.CALLS["refund"] == 0
    assert shop.MAILS == [("ada@example.org", "We cannot refund this.")]


@pytest.mark.usefixtures("page")
def test_a_phase_that_names_itself_is_a_loop(driver: Driver) -> None:
    customers = [f"customer-{n}" for n in range(250)]
    run = driver.start("newsletter", {"customers": customers})
    head = driver.go_on(run)
    assert (head.status, head.turn) == ("completed", 4)
    assert [to for to, _ in shop.MAILS] == customers


@pytest.mark.usefixtures("page")
def test_a_probe_asks_after_the_deadline(driver: Driver, move_clock: MoveClock) -> None:
    shop.TROUBLE["print_label"] = TimeoutError("no answer")
    run = driver.start("label-agent", {"parcel": "P-1"})
    assert driver.go_on(run).reason == "settling"
    move_clock(timedelta(seconds=40))
    sweep()
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == "label of P-1"
    assert (shop.CALLS["print_label"], shop.CALLS["find_label"]) == (1, 1)


@pytest.mark.usefixtures("page")
def test_a_call_fails_in_three_ways(driver: Driver, move_clock: MoveClock) -> None:
    given = {"customer": "ada", "amount": "5.00"}
    shop.TROUBLE["charge"] = shop.Declined("no money")
    run = driver.start("charge-agent", given)
    driver.go_on(run)
    assert driver.result(run) == {"charged": False, "why": "no money"}

    for trouble in (shop.Busy("later"), TimeoutError("no answer")):
        shop.TROUBLE["charge"] = trouble
        run = driver.start("charge-agent", given)
        head = driver.go_on(run)
        assert (head.status, head.failures) == ("queued", 1)
        shop.TROUBLE.clear()
        move_clock(timedelta(minutes=1))
        assert driver.go_on(run).status == "completed"
        assert driver.result(run) == {"charged": True, "receipt": "charged 5.00"}


@pytest.mark.usefixtures("page")
def test_after_five_failures_it_has_failed(driver: Driver, move_clock: MoveClock) -> None:
    shop.TROUBLE["charge"] = shop.Busy("later")
    run = driver.start("charge-agent", {"customer": "ada", "amount": "5.00"})
    for _ in range(4):
        assert driver.go_on(run).status == "queued"
        move_clock(timedelta(minutes=2))
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"charged": False, "why": "later"}
    assert shop.CALLS["charge"] == 5


@pytest.mark.usefixtures("page")
def test_several_actions_at_one_gate(driver: Driver) -> None:
    run = driver.start("bulk-return-agent", {"orders": {"A-7": "1.00", "B-8": "2.00"}})
    driver.go_on(run)
    pending = driver.pending(run)
    driver.decide(pending["A-7"])
    driver.decide(pending["B-8"], "reject")
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"A-7": "refunded 1.00 for A-7", "B-8": None}


@pytest.mark.usefixtures("page")
def test_an_outside_agent_hands_its_run_over(driver: Driver, agent: Agent) -> None:
    run = suspend(
        by=AgentPrincipal(agent, None),  # type: ignore[arg-type]
        external_id="A-7",
        title="Refund",
        snapshot=PostedSnapshot({"ticket": 88}, [], None, [], "outside-return-agent", 1),
        resume=Resume(ResumeMode.WORKFLOW, "outside-return-agent", "act"),
        asks=[Ask(key="call_1", tool="pay_back", args='{"order": "A-7", "amount": "3.00"}', title="Refund")],
    ).run
    driver.decide(driver.pending(run)["call_1"])
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"call_1": "refunded 3.00 for A-7"}


@pytest.mark.usefixtures("page")
def test_timers_and_events(driver: Driver, move_clock: MoveClock) -> None:
    run = driver.start("delivery-agent")
    assert driver.go_on(run).reason == "timer"
    record_event(run_id=run.id, name="parcel", payload={"delivered": True})
    move_clock(timedelta(days=3, seconds=1))
    sweep()
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == {"delivered": True}


@pytest.mark.usefixtures("page")
def test_own_classes_come_back_as_they_were(driver: Driver) -> None:
    run = driver.start("basket-agent", {"lines": [["apple", "1.10"], ["pear", "2.30"]]})
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == Decimal("3.40")


def test_a_parked_run_goes_on_after_a_deploy(page: Page, driver: Driver) -> None:
    run = driver.start("return-agent", {"order": "A-7"})
    driver.go_on(run)
    page.read(since="## Deploys")
    driver.decide(driver.pending(run)["refund"])
    assert driver.go_on(run).status == "completed"
    assert shop.MAILS == [("ada@example.org", "Refunded, with our apologies.")]
    assert Approval.objects.filter(run=run).count() == 1
    assert RunHead.objects.get(run=run).schema == 2


def test_every_workflow_of_the_page_is_run_by_a_test() -> None:
    tests = (ROOT / "tests" / "docs" / "test_concepts.py").read_text()
    for name in re.findall(r'@workflow\("([^"]+)"', PAGE):
        assert f'"{name}"' in tests
