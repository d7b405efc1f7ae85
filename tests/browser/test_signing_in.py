"""The door."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from runs.models import Agent
from tests.approvals.scenes import opened
from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser


def test_signing_in_comes_back_to_the_card(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    ana.password = PBKDF2PasswordHasher().encode("correct horse battery", "salt")  # as the web process stores them
    ana.save(update_fields=["password"])
    page = visit(None).open(card)
    page.get_by_label("Name").fill("ana")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("do not match")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("#card-title")).to_contain_text("wants to call")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_session_that_ended_leads_to_the_door(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    Session.objects.all().delete()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.url.endswith(f"next=/approvals/{card.pk}/")
