"""A browser before the web process as it is deployed. Whatever a page asks of anybody else fails the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.support.pages import browser
from tests.support.web import Web

# Playwright keeps an event loop in this thread, which Django takes for asynchronous code.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

CHROMIUM = Path("/usr/bin/chromium")
HOLD_SECONDS = 5.0  # some tests act within it, others wait for its end
PATIENCE = 15_000  # milliseconds
expect.set_options(timeout=PATIENCE)
# A refusal that a page shows, and a refresh that a vote overtook, are no mistakes of the page.
HARMLESS = ("Failed to load resource", "htmx:sendAbort", "htmx:afterRequest")
NAME_LOST = """
document.addEventListener("htmx:oobErrorNoTarget", (event) => console.error(event.detail.content.outerHTML));
"""


@pytest.fixture(scope="session")
def web(django_db_setup: None, broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    process = Web(log=tmp_path_factory.mktemp("web") / "web.log", FERMATA_HOLD_SECONDS=str(HOLD_SECONDS))
    yield process.wait_until_ready()
    process.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        reason = f"there is no {CHROMIUM}: apt-get install --no-install-recommends chromium fonts-dejavu-core"
        if os.environ.get("FERMATA_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


class Visitor:
    """One person's browser. `page` is Playwright's; `complaints` is what the browser objected to."""

    def __init__(self, page: Page, web: Web) -> None:
        self.page = page
        self.web = web
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        page.add_init_script(NAME_LOST)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._note)

    def go(self, path: str = "/") -> Page:
        self.page.goto(f"http://127.0.0.1:{self.web.port}{path}")
        return self.page

    def open(self, card: Any, query: str = "") -> Page:
        """The page of one card."""
        return self.go(f"/approvals/{card.pk}/{query}")

    @contextmanager
    def stream_opens(self) -> Iterator[None]:
        """What is done in here opens a page whose news come by themselves."""
        with self.page.expect_response(lambda response: urlsplit(response.url).path == "/live"):
            yield

    def sign_in(self, user: User) -> None:
        client = browser(user)
        cookie = next(morsel.value for name, morsel in client.cookies.items() if name.startswith("sessionid"))
        url = f"http://127.0.0.1:{self.web.port}"
        self.page.context.add_cookies([{"name": f"sessionid-{self.web.port}", "value": cookie, "url": url}])

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(HARMLESS):
            self.complaints.append(message.text)

    def _note(self, request: Request) -> None:
        place = urlsplit(request.url)
        if place.scheme != "data" and place.netloc != f"127.0.0.1:{self.web.port}":
            self.strangers.append(request.url)


@pytest.fixture
def visit(transactional_db: None, chromium: Browser, web: Web) -> Iterator[Callable[..., Visitor]]:
    """Open a browser: `visit(user)`, `visit(user, width=390, height=844, scheme="dark")`, `visit(None)`."""
    visitors: list[Visitor] = []

    def start(user: User | None, *, width: int = 1440, height: int = 900, scheme: str = "light") -> Visitor:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,  # type: ignore[arg-type]
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="Europe/Berlin",
        )
        context.set_default_timeout(PATIENCE)
        visitor = Visitor(context.new_page(), web)
        visitors.append(visitor)
        if user is not None:
            visitor.sign_in(user)
        return visitor

    yield start
    for visitor in visitors:
        visitor.page.context.close()
    for visitor in visitors:
        assert visitor.strangers == [], "a page asked somebody else for something"
        assert visitor.complaints == []


@pytest.fixture
def ana(person: Callable[..., User]) -> User:
    """A reviewer who also operates runs."""
    user = person("ana", "reviewer", "operator")
    user.first_name, user.last_name = "Ana", "Lindqvist"
    user.save(update_fields=["first_name", "last_name"])
    return user


@pytest.fixture
def ben(person: Callable[..., User]) -> User:
    return person("ben", "reviewer")
