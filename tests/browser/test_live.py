"""News come by themselves, and never move what is under the hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.models import Agent
from tests.approvals.scenes import cast, opened
from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser


def test_new_cards_are_announced_and_wait(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    opened(agent, title="The first")
    visitor = visit(ana)
    with visitor.stream_opens():
        page = visitor.go()
    page.locator(".row").focus()
    opened(agent, title="The second")
    expect(page.get_by_role("link", name="Show 1 new card")).to_be_visible()
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row")).to_be_focused()
    expect(page.locator(".tabs [aria-current] .count")).to_have_text("2")
    page.get_by_role("link", name="Show 1 new card").click()
    expect(page.locator(".row")).to_have_count(2)


def test_an_open_card_follows_what_others_do(visit: Callable[..., Visitor], agent: Agent, ana: User, ben: User) -> None:
    card = opened(agent)
    visitor = visit(ana)
    with visitor.stream_opens():
        page = visitor.open(card)
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    cast(card, ben, "reject", message="Not today.")
    expect(page.locator("#progress")).to_contain_text("Not today.")
    expect(page.locator("#card-head")).to_contain_text("Rejected")
