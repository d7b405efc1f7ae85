"""The pages of a run's checkpoints: the list, two of them side by side, one as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runs.models import Agent
from tests.approvals.scenes import parked_run
from tests.checkpoints.store.runs import Run as Saved
from tests.support.api import as_agent, as_person, suspension
from tests.support.pages import browser

pytestmark = pytest.mark.django_db
PASSWORD = "Zq8vR2xLw5TkP1nYb7Gd"


@pytest.fixture
def saved(agent: Agent) -> Saved:
    run = Saved()
    run.id = parked_run(agent).pk
    run.save({"order": {"id": "A-7", "lines": [1, 2]}, "paid": False}, ["a", "b"], position={"step": 1}, pending=[])
    run.save({"order": {"id": "A-7", "lines": [1]}, "paid": False}, ["c"], position={"step": 2}, pending=[])
    run.save({"order": {"id": "A-7", "lines": [1]}, "paid": True, "by": "<b>"}, ["d"], position={"step": 3},
             pending=[{"tool": "refund"}])  # fmt: skip
    return run


@pytest.fixture
def client(reviewer: User) -> Client:
    return browser(reviewer)


def test_the_runs_page_lists_its_checkpoints(client: Client, saved: Saved) -> None:
    shown = client.get(f"/runs/{saved.id}/").content.decode()
    for seq in range(3):
        assert f'href="/runs/{saved.id}/checkpoints/{seq}/"' in shown
    assert f'action="/runs/{saved.id}/compare/"' in shown


def test_every_checkpoint_is_on_a_page_of_the_list(
    client: Client, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.views.PAGE", 2)
    address, seen = f"/runs/{saved.id}/checkpoints/", []
    while address:
        context = client.get(address).context
        seen += [row.seq for row in context["rows"]]
        following = context["following"]
        address = f"/runs/{saved.id}/checkpoints/?before={following}" if following is not None else ""
    assert seen == [2, 1, 0]


@pytest.mark.parametrize("query", ["before=0&after=2", "before=2&after=0"])
def test_any_two_are_compared_the_earlier_one_first(client: Client, saved: Saved, query: str) -> None:
    response = client.get(f"/runs/{saved.id}/compare/?{query}")
    comparison, shown = response.context["shown"], response.content.decode()
    assert [change.place for change in comparison.state.shown] == ["state.order.lines[1]", "state.paid", "state.by"]
    assert [change.place for change in comparison.position.shown] == ["position.step"]
    assert [change.place for change in comparison.pending.shown] == ["pending[0]"]
    assert [item.index for item in comparison.added] == [2, 3]
    assert "From checkpoint 0 to 2" in shown
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_what_is_the_same_is_said_to_be(client: Client, saved: Saved) -> None:
    shown = client.get(f"/runs/{saved.id}/compare/?before=1&after=1").content.decode()
    for words in ("This is one checkpoint", "The state is the same.", "The position is the same.", "Nothing."):
        assert words in shown


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("", 400, "Name two checkpoints"),
        ("before=x&after=1", 400, "Name two checkpoints"),
        ("before=-1&after=1", 400, "Name two checkpoints"),
        ("before=0&after=7", 404, "Checkpoint 7 was never saved, or is no longer kept."),
        ("before=0&after=99999999999999999999999", 404, "Checkpoint 99999999999999999999999 was never saved"),
    ],
)
def test_what_cannot_be_compared_is_said(client: Client, saved: Saved, query: str, status: int, words: str) -> None:
    response = client.get(f"/runs/{saved.id}/compare/?{query}")
    assert (response.status_code, words in response.content.decode()) == (status, True)


def test_long_differences_say_what_they_leave_out(
    client: Client, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.presentation.checkpoints.CHANGES", 1)
    monkeypatch.setattr("runs.presentation.checkpoints.ITEMS", 1)
    shown = client.get(f"/runs/{saved.id}/compare/?before=0&after=2").content.decode()
    assert "And 2 more changes" in shown
    assert f'href="/runs/{saved.id}/history/?first=3">1 more</a>' in shown


def test_a_file_has_what_the_api_has(client: Client, saved: Saved, agent: Agent) -> None:
    response = client.get(f"/runs/{saved.id}/checkpoints/1/json/")
    assert response["Content-Disposition"] == f'attachment; filename="run-{saved.id}-checkpoint-1.json"'
    assert response["Content-Type"] == "application/json"
    assert response.json() == as_agent(agent).get(f"/runs/{saved.id}/snapshot?seq=1").json()
    assert client.get(f"/runs/{saved.id}/checkpoints/7/json/").status_code == 404


def test_what_an_agent_posted_comes_back_as_it_was(client: Client, agent: Agent) -> None:
    """It is JSON already: marked as Python's values are, it would be something else."""
    asked = suspension()
    asked["snapshot"]["state"] = {"py/uuid": "x", "n": 1.5}
    run_id = as_agent(agent).post("/suspensions", asked).json()["run"]["id"]
    assert client.get(f"/runs/{run_id}/checkpoints/0/json/").json()["state"] == {"py/uuid": "x", "n": 1.5}
    assert "py/dict" not in client.get(f"/runs/{run_id}/checkpoints/0/").content.decode()


@pytest.fixture
def with_a_password(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> Iterator[UUID]:
    """As an older build saved it, which knew fewer credentials."""
    run = Saved()
    run.id = parked_run(agent).pk
    with monkeypatch.context() as patch:
        patch.setattr("checkpoints.codec.secrecy._credentials", lambda *_: iter(()))
        for n in range(2):
            text = f"{n}{PASSWORD}"
            run.save({"db": {"password": text, "n": n}}, [{"role": "user", "content": {"password": text}}],
                     position={"password": text}, pending=[{"args": {"password": text}}])  # fmt: skip
    return run.id


@pytest.mark.parametrize(
    "place", ["checkpoints/0/", "checkpoints/1/", "checkpoints/1/json/", "compare/?before=0&after=1", "history/"]
)
def test_credentials_are_masked(client: Client, with_a_password: UUID, place: str) -> None:
    shown = client.get(f"/runs/{with_a_password}/{place}").content.decode()
    assert PASSWORD not in shown
    assert "[redacted: named-secret]" in shown


def test_the_api_masks_them_for_people_and_not_for_the_agent(
    reviewer: User, agent: Agent, with_a_password: UUID
) -> None:
    path = f"/runs/{with_a_password}/snapshot"
    for_people = as_person(reviewer).get(path).content.decode()
    assert PASSWORD not in for_people
    assert "[redacted: named-secret]" in for_people
    assert PASSWORD in as_agent(agent).get(path).content.decode()


def test_a_damaged_checkpoint_is_explained_and_not_downloaded(client: Client, saved: Saved) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE checkpoints_statepart SET body = body || 'x' WHERE run_id = %s", [saved.id])
    refused = client.get(f"/runs/{saved.id}/checkpoints/2/json/", follow=True)
    assert "This checkpoint cannot be shown" in refused.content.decode()
    assert "They cannot be shown" in client.get(f"/runs/{saved.id}/compare/?before=0&after=2").content.decode()


def test_administrators_of_the_team_see_none_of_it(saved: Saved, person: Callable[..., User]) -> None:
    client = browser(person("boss", "admin"))
    for place in ("checkpoints/", "checkpoints/0/json/", "compare/?before=0&after=1"):
        assert client.get(f"/runs/{saved.id}/{place}").status_code == 404
