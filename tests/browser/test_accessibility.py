"""Every kind of page against WCAG 2.2 AA, in light and dark, on a phone and on a desk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from playwright.sync_api import Page

from checkpoints import codec
from runs.bodies import result_place, seal
from runs.models import Agent, Run, RunHead
from runs.states import RunKind, RunStatus
from tests.approvals.scenes import cast, opened
from tests.browser.conftest import Visitor
from tests.support.api import PASSWORD

pytestmark = pytest.mark.browser

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
EVERY_LOOK = [
    pytest.param({"width": 1440, "height": 900}, id="desk-light"),
    pytest.param({"width": 1440, "height": 900, "scheme": "dark"}, id="desk-dark"),
    pytest.param({"width": 390, "height": 844}, id="phone-light"),
    pytest.param({"width": 390, "height": 844, "scheme": "dark"}, id="phone-dark"),
]
LOOKS = EVERY_LOOK[::3]  # the two that have nothing in common
WIDTHS = (320, 390, 768, 1024, 1280, 1600)


def check(page: Page) -> None:
    page.wait_for_load_state("load")
    found = Axe().run(page, options=RULES)
    wrong = [
        f"{violation['id']}: {[node['html'][:160] for node in violation['nodes']]}"
        for violation in found.response["violations"]
    ]
    assert wrong == [], page.url


@pytest.mark.parametrize("look", EVERY_LOOK)
def test_inbox_and_cards(
    visit: Callable[..., Visitor], agent: Agent, ana: User, ben: User, look: dict[str, Any]
) -> None:
    plain = opened(
        agent, description="Because **of** `this`:\n\n- a\n- b\n\n> so", args={"order": "A-7", "list": [1, {"a": None}]}
    )
    odd = opened(agent, title="Odd", risk="high", args={"path": "/tmp/\u200bimportant", "long": "word " * 500})
    cast(opened(agent, title="Done"), ben, "reject", message="No.")
    cast(opened(agent, title="Granted"), ben)
    run = Run.objects.create(team=agent.team, agent=agent, kind=RunKind.HOSTED, title="Nightly sums")
    RunHead.objects.create(run=run, status=RunStatus.BLOCKED, detail="workflow 'sums' is not registered")
    visitor = visit(ana, **look)
    check(visitor.go())
    check(visitor.go("/?q=nothing+like+this"))
    check(visitor.go("/?tab=history"))
    check(visitor.go("/?tab=attention"))
    check(visitor.go("/approvals/unperformed/"))
    check(visitor.open(odd))
    for answer in ("approve", "edit", "reject", "respond"):
        check(visitor.open(plain, f"?answer={answer}"))
    page = visitor.open(plain)
    check(page)
    page.get_by_role("button", name="Approve").click()
    page.locator("#progress").wait_for()
    check(page)


@pytest.mark.parametrize("look", LOOKS)
def test_runs(visit: Callable[..., Visitor], agent: Agent, ana: User, look: dict[str, Any]) -> None:
    card = opened(agent)
    card.run.result = seal(codec.encode({"done": True}), result_place(card.run_id))
    card.run.save(update_fields=["result"])
    visitor = visit(ana, **look)
    check(visitor.go("/runs/"))
    check(visitor.go(f"/runs/{card.run_id}/"))
    check(visitor.go(f"/runs/{card.run_id}/history/"))


@pytest.mark.parametrize("look", LOOKS)
def test_personal_tokens(visit: Callable[..., Visitor], ana: User, look: dict[str, Any]) -> None:
    ana.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt")  # the web process knows no quick one
    ana.save(update_fields=["password"])
    page = visit(ana, **look).go("/tokens/")
    check(page)
    page.get_by_role("button", name="Make it").click()
    check(page)
    page.get_by_label("What it is for").fill("nightly report")
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Make it").click()
    page.get_by_text("This is the token").wait_for()
    check(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= look["width"]


@pytest.mark.parametrize("look", LOOKS)
def test_doors(visit: Callable[..., Visitor], ana: User, look: dict[str, Any]) -> None:
    visitor = visit(None, **look)
    page = visitor.go("/login")
    check(page)
    page.get_by_label("Name").fill("nobody")
    page.get_by_label("Password").fill("nothing")
    page.get_by_role("button", name="Sign in").click()
    check(page)
    check(visit(ana, **look).go("/runs/00000000-0000-4000-8000-000000000000/"))
    page = visit(ana, **look).go()
    page.keyboard.press("?")
    check(page)


def test_nothing_scrolls_sideways(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    word = "unbreakable" * 18
    card = opened(
        agent, title=word[:200], tool="a.very.long/tool:name_" * 5, args={word: word, "deep": [[[[{word: word}]]]]}
    )
    for width in WIDTHS:
        visitor = visit(ana, width=width, height=800)
        for path in (
            "/",
            f"/approvals/{card.pk}/",
            f"/approvals/{card.pk}/?answer=edit",
            "/runs/",
            f"/runs/{card.run_id}/",
        ):
            page = visitor.go(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, path)


def test_a_phone_shows_the_queue_or_the_card(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    opened(agent)
    page = visit(ana, width=390, height=844).go()
    page.locator(".row").click()
    page.locator("#card").wait_for()
    assert not page.locator(".row").is_visible()
    page.locator(".back").click()
    page.locator(".row").wait_for()
    assert not page.locator("#card").is_visible()
