"""The event stream itself, opened by everybody in docs/permissions.md: each hears what its table says, and no more."""

from __future__ import annotations

import http.client
from contextlib import ExitStack

from django.contrib.sessions.models import Session

from tests.approvals.doors import Scene
from tests.approvals.scenes import cast, opened
from tests.approvals.test_permissions import TABLE, scene
from tests.support.api import as_agent
from tests.support.web import Web
from tests.web.test_events import begun, cookies, heard

__all__ = ["scene"]

# What each actor gets to hear: the kinds of change, or None where there is no stream.
CELLS = {row.what.removeprefix("hear of "): row.expected for row in TABLE if row.address.startswith("/live/visible")}
ACTORS = list(CELLS["an approval"])


def hears(actor: str) -> set[str] | None:
    approval, run = CELLS["an approval"][actor], CELLS["a run"][actor]
    if approval == "403":
        return None
    return {kind for kind, cell in (("approval", approval), ("run", run)) if cell == "yes"}


def credentials(web: Web, scene: Scene, actor: str) -> dict[str, str]:
    if actor in scene.agents:
        return {"Authorization": as_agent(scene.agents[actor]).authorization or ""}
    return {"Cookie": cookies(web, scene.people[actor])} if actor in scene.people else {}


def comment(response: http.client.HTTPResponse) -> bytes:
    """The next line with something on it: what a burst says to somebody who may see none of it."""
    return next(line for line in response if line.strip())


def test_everybody_hears_what_the_table_says(web: Web, scene: Scene) -> None:
    assert {actor for actor in ACTORS if hears(actor) is None} == {"nobody", "another agent", "agent"}
    ids = {"approval": str(scene.approval.pk), "run": str(scene.run.pk)}
    with ExitStack() as open_streams:
        streams: dict[str, http.client.HTTPResponse] = {}
        for actor in ACTORS:
            response = open_streams.enter_context(web.opened("GET", "/live", **credentials(web, scene, actor)))
            if hears(actor) is None:
                assert response.status == 403, actor
            else:
                streams[actor] = begun(response)
        cast(scene.approval, scene.people["guest"])
        cast(scene.approval, scene.people["reviewer"])
        for actor, response in streams.items():
            expected = {(kind, ids[kind]) for kind in hears(actor) or set()}
            told: set[tuple[str, str]] = set()
            while told < expected:  # they may come in two bursts
                told.add(heard(response))
            assert told == expected, actor
            if not expected:
                assert comment(response) == b":\n", actor

        Session.objects.all().delete()
        opened(scene.agent)
        for actor, response in streams.items():
            rest = set(iter(lambda stream=response: heard(stream), ("end", "")))
            assert rest <= {(kind, ids[kind]) for kind in hears(actor) or set()}, actor


def test_a_session_that_ended_opens_no_stream(web: Web, scene: Scene) -> None:
    ended = cookies(web, scene.people["reviewer"])
    Session.objects.all().delete()
    assert web.ask("GET", "/live", Cookie=ended).status == 403
    assert web.ask("GET", "/live", Cookie="sessionid-1=made-up").status == 403
