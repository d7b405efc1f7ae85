"""Somebody was first, something changed, or the run is over: the page says so, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from approvals import canonical
from approvals.models import Approval, Decision
from approvals.services.settling import settle
from approvals.states import ApprovalStatus
from runs.models import Agent
from runs.services.controlling import cancel_run
from tests.approvals.scenes import cast, opened
from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser


def approve(page: Page) -> int:
    """Click, and give the status of the answer."""
    with page.expect_response(lambda response: "/vote/" in response.url) as answer:
        page.get_by_role("button", name="Approve").click()
    return answer.value.status


# mastra-ai/mastra#20443
def test_the_second_tab_is_told_who_was_first(
    visit: Callable[..., Visitor], agent: Agent, ana: User, ben: User
) -> None:
    card = opened(agent)
    first, second = visit(ana).open(card), visit(ben).open(card)
    assert approve(first) == 200
    assert approve(second) == 409
    notice = second.locator(".notice")
    expect(notice).to_contain_text("Already approved by Ana Lindqvist")
    expect(notice).to_contain_text("Your click changed nothing.")
    expect(notice).to_be_focused()


# heymrun/heym#563
def test_a_late_reject_changes_nothing(visit: Callable[..., Visitor], agent: Agent, ana: User, ben: User) -> None:
    card = opened(agent)
    page = visit(ben).open(card, "?answer=reject")
    cast(card, ana)
    page.get_by_role("button", name="Reject").click()
    expect(page.locator(".notice")).to_contain_text("Already approved by Ana Lindqvist")
    assert Decision.objects.get(approval=card).outcome == ApprovalStatus.APPROVED


def test_a_vote_on_older_arguments_shows_what_changed(
    visit: Callable[..., Visitor], agent: Agent, ana: User, ben: User
) -> None:
    card = opened(agent, args={"order": "A-7", "amount": 49}, risk="high")
    page = visit(ben).open(card, "?answer=approve")
    cast(card, ana, "edit", args=canonical.dumps({"order": "A-7", "amount": 4900}))
    page.get_by_label("I have read every argument").check()
    assert approve(page) == 409
    notice = page.locator(".notice").first
    expect(notice).to_contain_text("This card has changed")
    expect(notice.locator("del")).to_contain_text("49")
    expect(notice.locator("ins")).to_contain_text("4900")
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


# nimbalyst/nimbalyst#1183
def test_an_old_tab_after_the_run_ended(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    visitor = visit(ana)
    page = visitor.open(card)
    cancel_run(run_id=card.run_id, actor="system", reason="the order was withdrawn")
    assert approve(page) == 409
    expect(page.locator(".notice")).to_contain_text("Already cancelled")
    expect(page.locator("#progress")).to_contain_text("the order was withdrawn")
    expect(visitor.go().locator(".rows")).to_have_count(0)


def test_the_loser_sees_the_decision_arrive(visit: Callable[..., Visitor], agent: Agent, ana: User, ben: User) -> None:
    card = opened(agent)
    watching = visit(ben).open(card)
    approve(visit(ana).open(card))
    watching.reload()
    expect(watching.locator("#progress")).to_contain_text("Ana Lindqvist approved")
    expect(watching.get_by_role("button", name="Undo")).to_have_count(0)
    expect(watching.locator("#progress")).to_contain_text("by Ana Lindqvist")
    assert settle(approval_id=card.pk).status == ApprovalStatus.APPROVED
