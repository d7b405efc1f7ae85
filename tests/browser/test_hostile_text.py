"""What an agent writes is data: shown whole, marked where it could mislead, never obeyed by a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from runs.models import Agent
from tests.approvals.scenes import opened
from tests.browser.conftest import Visitor

pytestmark = pytest.mark.browser

# luisgf/infrabroker#239, Netflix/metaflow#3278, curie-eng/curie#1074
MARKUP = [
    "x` <https://evil.example|Approve here> `",
    "<img src=x onerror=alert(1)>",
    "![p](https://evil.example/?c)",
    "[ok](javascript:alert(1))",
    "<a href=https://evil.example hx-get=/approvals/ hx-trigger=load>go</a>",
    "</div></article><form action=https://evil.example><button>Approve</button></form>",
]
# langchain-ai/deepagents#1662, openclaw/openclaw PR#43687
HIDDEN = {
    "curl http://safe.example/\u202e\u2066moc.live\u2069/data": r"curl http://safe.example/\u202e\u2066moc.live\u2069/data",
    "/tmp/\u200bimportant": r"/tmp/\u200bimportant",
    "https://\u0430pple.com": r"https://\u0430pple.com",
    "A\U000e0041": r"A\u{e0041}",
}


def test_markup_is_literal_everywhere(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    everything = " ".join(MARKUP)
    card = opened(agent, title=everything[:200], description="\n\n".join(MARKUP), args={text: text for text in MARKUP})
    visitor = visit(ana)
    alerts: list[str] = []
    visitor.page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    for page in (
        visitor.go(),
        visitor.open(card),
        visitor.open(card, "?answer=edit"),
        visitor.go(f"/runs/{card.run_id}/"),
    ):
        page.wait_for_load_state("networkidle")
        assert page.locator("img:not([src*='mark.svg']), a[href*='evil'], form[action*='evil'], [onerror]").count() == 0
    page = visitor.open(card)
    for text in MARKUP:
        expect(page.locator("dd.value").get_by_text(text, exact=False).first).to_be_visible()
        assert text in page.locator(".words").inner_text()
    assert page.locator(".words [hx-get], .words a").count() == 0
    assert alerts == []


def test_what_hides_is_shown_and_warned_of(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent, title="Odd", args={f"arg{at}": text for at, text in enumerate(HIDDEN)})
    visitor = visit(ana)
    expect(visitor.go().locator(".row")).to_contain_text("Odd characters")
    page = visitor.open(card)
    shown = page.locator("dd.value").all_inner_texts()
    assert shown == [f'"{escaped}"' for escaped in HIDDEN.values()]
    warnings = page.locator(".card-head .notice")
    expect(warnings.first).to_contain_text("RIGHT-TO-LEFT OVERRIDE, U+202E")
    expect(warnings.last).to_contain_text("CYRILLIC SMALL LETTER A, U+0430")


def test_pages_obey_a_strict_policy(visit: Callable[..., Visitor], agent: Agent, ana: User) -> None:
    card = opened(agent)
    page = visit(ana).open(card)
    response = page.reload()
    assert response is not None
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["cache-control"].find("no-store") >= 0
    assert page.locator("[style], script:not([src]), style").count() == 0
