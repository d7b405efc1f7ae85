"""The keyboard: never while typing, and never one key for something grave."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from approvals.models import Approval, Vote
from approvals.states import ApprovalStatus
from runs.models import Agent
from tests.approvals.scenes import opened
from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser


def test_j_k_and_enter(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    for number in range(3):
        opened(agent, title=f"Refund number {number}")
    page = visit(ana).go()
    rows = page.locator(".row")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(2)).to_be_focused()
    page.keyboard.press("k")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#card")).to_contain_text("Refund number 1")
    expect(rows.nth(1)).to_have_attribute("aria-current", "true")
    expect(page.locator("#card-title")).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(2)).to_be_focused()


def test_a_approves_and_c_claims(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    page.keyboard.press("c")
    expect(page.get_by_text("You are on it")).to_be_visible()
    page.keyboard.press("a")
    expect(page.get_by_text("You approved")).to_be_visible()
    assert Vote.objects.get(approval=card).verdict == "approve"


def test_nothing_happens_while_typing(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    page.keyboard.press("/")
    page.keyboard.type("aerjkc?")
    expect(page.get_by_role("searchbox")).to_have_value("aerjkc?")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.get_by_label("Reason").press_sequentially("a clear case")
    expect(page.get_by_label("Reason")).to_have_value("a clear case")
    assert not Vote.objects.exists()


@pytest.mark.parametrize("fields", [{"risk": "high"}, {"args": {"path": "/tmp/\u200bimportant"}}])
def test_a_only_moves_the_focus_where_care_is_due(
    visit: Callable[..., Visitor], agent: Agent, ana: User, fields: dict[str, object]
) -> None:
    card = opened(agent, **fields)
    page = visit(ana).open(card)
    page.keyboard.press("a")
    expect(page.get_by_role("link", name="Approve")).to_be_focused()
    page.keyboard.press("a")
    expect(page.locator("#answer")).to_have_count(0)
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_single_keys_can_be_switched_off(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    visitor = visit(ana)
    page = visitor.open(card)
    page.keyboard.press("?")
    page.get_by_label("Single keys work").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("a")
    visitor.open(card).keyboard.press("a")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    assert not Vote.objects.exists()


def test_the_whole_card_is_reached_by_tab(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    page.get_by_role("button", name="Approve").focus()
    for name in ("Edit", "Reject", "Respond"):
        page.keyboard.press("Tab")
        expect(page.locator(":focus")).to_contain_text(name)
