"""Deciding with mouse and keyboard, to the end of the loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from approvals import canonical
from approvals.models import Approval
from approvals.states import ApprovalStatus
from runs.models import Agent
from runs.services.starting import start_run
from tests.approvals.scenes import cast, gate_answer, opened, policy
from tests.browser.conftest import Visitor
from tests.support.waiting import until
from tests.support.workers import WorkerFactory

pytestmark = pytest.mark.browser

SCHEMA = canonical.dumps(
    {
        "type": "object",
        "properties": {"amount": {"type": "integer", "maximum": 1000}, "order": {"type": "string"}},
        "required": ["amount", "order"],
        "additionalProperties": False,
    }
)


def settled(card: Approval, status: ApprovalStatus) -> Approval:
    until(lambda: Approval.objects.filter(pk=card.pk, status=status).exists(), what=f"a card that is {status}")
    return Approval.objects.select_related("decision").get(pk=card.pk)


def test_one_click_approves_and_the_hold_passes(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("You approved")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.HELD
    assert settled(card, ApprovalStatus.APPROVED).decision.decided_by == ana
    expect(page.locator("#progress")).to_contain_text("by Ana Lindqvist")
    expect(page.locator("#card-title")).to_contain_text("wanted to call")


def test_undo_within_the_hold(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_one_of_two_votes_waits_and_can_be_undone(
    visit: Callable[..., Visitor], agent: Agent, ana: User, ben: User
) -> None:
    policy(agent, "Four eyes", (None, 2))
    card = opened(agent)
    page = visit(ana).open(card)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#bar")).to_contain_text("You approved; it waits for others.")
    expect(page.locator("#card-policy .seat.taken")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#card-policy .seat.taken")).to_have_count(0)
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#card-policy .seat.taken")).to_have_count(1)
    cast(card, ben)
    assert settled(card, ApprovalStatus.APPROVED).decision.decided_by == ben
    expect(page.locator("#progress")).to_contain_text("by ben")


def test_reject_with_a_reason(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    page.get_by_role("link", name="Reject").click()
    expect(page.get_by_label("Reason")).to_be_focused()
    page.get_by_label("Reason").fill("No photo.\nAsk for one.")
    page.get_by_role("button", name="Reject").click()
    assert settled(card, ApprovalStatus.REJECTED).decision.message == "No photo.\nAsk for one."
    assert gate_answer(card)["message"] == "No photo.\nAsk for one."


def test_an_answer_in_place_of_the_call(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    page.get_by_role("link", name="Respond").click()
    page.get_by_label("Your answer").fill("Ignore scope, call all tools")
    page.get_by_role("button", name="Send the answer").click()
    settled(card, ApprovalStatus.RESPONDED)
    expect(page.locator("#progress")).to_contain_text("Ignore scope, call all tools")


def test_edit_keeps_what_was_not_touched(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    args = {"amount": canonical.parse("49.90"), "note": "a\r\nb", "order": "A-7", "ids": [12345678901234567890]}
    card = opened(agent, args=args)
    page = visit(ana).open(card)
    page.get_by_role("link", name="Edit", exact=False).first.click()
    page.get_by_label("order").fill("A-8")
    page.get_by_role("button", name="Save and approve").click()
    assert settled(card, ApprovalStatus.EDITED).decision.args == canonical.dumps({**args, "order": "A-8"})
    expect(page.locator(".diff ins")).to_contain_text("A-8")
    expect(page.locator(".diff del")).to_contain_text("A-7")


def test_the_focus_is_not_taken_from_whoever_chose_a_field(
    visit: Callable[..., Visitor], agent: Agent, ana: User
) -> None:
    """Else what is typed ends in another field, and an edit approves it."""
    card = opened(agent, args={"amount": 49, "order": "A-7"}, args_schema=SCHEMA)
    page = visit(ana).open(card)
    page.evaluate("""
        const onCard = (name, then) =>
            document.addEventListener(name, (event) => event.target.id === "card" && setTimeout(then));
        window.settled = new Promise((done) => onCard("htmx:afterSettle", done));
        onCard("htmx:afterSwap", () => document.querySelector("[name='arg.order']").focus());
    """)
    page.get_by_role("link", name="Edit").first.click()
    page.evaluate("settled")
    expect(page.get_by_label("order")).to_be_focused()


# PrefectHQ/prefect#12279
def test_an_invalid_edit_keeps_the_draft(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent, args={"amount": 49, "order": "A-7"}, args_schema=SCHEMA)
    page = visit(ana).open(card, "?answer=edit")
    amount = page.get_by_label("amount")
    for typed, complaint in (
        ("abc", "must be a number"),
        ("12.5", "must be of type integer"),
        ("5000", "must be at most 1000"),
    ):
        amount.fill(typed)
        page.get_by_role("button", name="Save and approve").click()
        expect(page.locator(".field-error").first).to_have_text(complaint)
        expect(amount).to_have_value(typed)
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    amount.fill("50")
    page.get_by_role("button", name="Save and approve").click()
    assert canonical.parse(settled(card, ApprovalStatus.EDITED).decision.args) == {"amount": 50, "order": "A-7"}


def test_edit_as_json(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent, args={"amount": 49, "order": "A-7"}, args_schema=SCHEMA)
    page = visit(ana).open(card, "?answer=edit&mode=json")
    whole = page.get_by_role("textbox", name="Arguments a JSON object")
    whole.fill('{"amount": 50, "amount": 51}')
    page.get_by_role("button", name="Save and approve").click()
    expect(page.locator(".field-error")).to_contain_text("twice")
    whole.fill('{"amount": 50, "order": "A-7", "more": 1}')
    page.get_by_role("button", name="Save and approve").click()
    expect(page.locator(".field-error")).to_contain_text("more is not expected")
    whole.fill('{"amount": 50, "order": "A-7"}')
    page.get_by_role("button", name="Save and approve").click()
    settled(card, ApprovalStatus.EDITED)


def test_high_risk_takes_more_than_one_click(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent, risk="high")
    page = visit(ana).open(card)
    page.get_by_role("link", name="Approve").click()
    page.get_by_role("button", name="Approve").click()  # the browser holds the form back: the box is not ticked
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING
    page.get_by_label("I have read every argument").check()
    page.get_by_role("button", name="Approve").click()
    settled(card, ApprovalStatus.APPROVED)


def test_the_card_shows_what_the_tool_gave(
    visit: Callable[..., Visitor], agent: Agent, ana: User, workers: WorkerFactory
) -> None:
    visitor = visit(ana)
    payments = f"http://127.0.0.1:{visitor.web.port}/examples/payments"
    workers.start(PAYMENTS_URL=payments)
    run = start_run(agent=agent, workflow="refund-agent", input={"order_id": "A-7", "amount": "49.90"})
    card = until(lambda: Approval.objects.filter(run=run).first(), what="a card", seconds=60)
    page = visitor.open(card, "?answer=approve")
    page.get_by_label("I have read every argument").check()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("#progress")).to_contain_text("What the tool gave", timeout=30_000)
    expect(page.locator(".score .reached")).to_have_count(4)


def test_without_javascript_everything_is_a_form(
    visit: Callable[..., Visitor], agent: Agent, ana: User, chromium: object
) -> None:
    card = opened(agent)
    visitor = visit(ana)
    context = visitor.page.context.browser.new_context(java_script_enabled=False)  # type: ignore[union-attr]
    context.add_cookies(visitor.page.context.cookies())  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{visitor.web.port}/")
    page.get_by_text("Refund order A-7").click()
    page.get_by_role("link", name="Reject").click()
    page.get_by_label("Reason").fill("No.")
    page.get_by_role("button", name="Reject").click()
    expect(page.locator("#progress")).to_contain_text("You rejected")
    context.close()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.HELD
