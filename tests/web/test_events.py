"""`GET /live`: ids only, to those who may see them, as long as their session lives."""

from __future__ import annotations

import http.client
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session

from runs.models import Agent
from tests.approvals.scenes import cast, opened
from tests.support.pages import browser
from tests.support.web import Web


def cookies(web: Web, user: User) -> str:
    """A session of this person, under the name that the web process gives its cookie."""
    client = browser(user)
    return f"sessionid-{web.port}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def heard(response: http.client.HTTPResponse) -> tuple[str, str]:
    """The next event: its kind and its data."""
    kind = ""
    for line in response:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            return kind, value
    return "end", ""


def begun(response: http.client.HTTPResponse) -> http.client.HTTPResponse:
    assert (response.status, response.getheader("Content-Type")) == (200, "text/event-stream; charset=utf-8")
    assert response.readline() == b"retry: 2000\n"
    return response


def test_a_reviewer_hears_of_new_and_of_decided_approvals(web: Web, agent: Agent, reviewer: User) -> None:
    with web.opened("GET", "/live", Cookie=cookies(web, reviewer)) as response:
        begun(response)
        approval = opened(agent)
        assert {heard(response), heard(response)} == {("approval", str(approval.pk)), ("run", str(approval.run_id))}
        cast(approval, reviewer)
        assert {heard(response), heard(response)} == {("approval", str(approval.pk)), ("run", str(approval.run_id))}


def test_nobody_hears_of_what_they_cannot_see(web: Web, agent: Agent, reviewer: User) -> None:
    stranger = User.objects.create_user("stranger", password="correct horse battery")
    with (
        web.opened("GET", "/live", Cookie=cookies(web, stranger)) as strangers,
        web.opened("GET", "/live", Cookie=cookies(web, reviewer)) as reviewers,
    ):
        begun(strangers)
        begun(reviewers)
        approval = opened(agent)
        assert heard(reviewers)[1] in {str(approval.pk), str(approval.run_id)}
        Session.objects.all().delete()
        assert heard(strangers) == ("end", "")


def test_the_stream_ends_with_the_session(web: Web, agent: Agent, reviewer: User) -> None:
    with web.opened("GET", "/live", Cookie=cookies(web, reviewer)) as response:
        begun(response)
        Session.objects.all().delete()
        opened(agent)
        assert heard(response) == ("end", "")


def test_without_a_session_there_is_no_stream(web: Web) -> None:
    assert web.ask("GET", "/live").status == 403


def test_an_id_is_a_uuid(web: Web, reviewer: User) -> None:
    assert web.ask("GET", "/live/visible?run=1", Cookie=cookies(web, reviewer)).status == 400


def test_a_stop_ends_the_stream(start_web: Callable[..., Web], reviewer: User) -> None:
    web = start_web()
    with web.opened("GET", "/live", Cookie=cookies(web, reviewer)) as response:
        begun(response)
        web.signal(15)
        assert heard(response) == ("end", "")
    web.wait()
