"""The pages of runs, for runs that really ran."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.models import Run, RunHead
from runs.services.sweeping import sweep
from runs.states import RunStatus
from tests.engine import flows
from tests.engine.conftest import Driver
from tests.support.pages import browser

pytestmark = pytest.mark.django_db(transaction=True)


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    return response.content.decode()


@pytest.fixture
def operator(person: Callable[..., User]) -> Client:
    return browser(person("operator", "operator"))


def completed(driver: Driver) -> Run:
    run = driver.start("test/steps", {"why": "because"})
    assert driver.go_on(run).status == RunStatus.COMPLETED
    return run


def failed(driver: Driver) -> Run:
    flows.SWITCH["send"] = "refuse"
    run = driver.start("test/steps")
    assert driver.go_on(run).status == RunStatus.FAILED
    return run


def test_a_run_from_start_to_end(driver: Driver, operator: Client) -> None:
    run = completed(driver)
    shown = page(operator, f"/runs/{run.pk}/")
    for words in ("Completed", "It came to its end.", "send", "Saved checkpoint", "Result", "because"):
        assert words in shown, words
    assert "Cancel the run" not in shown


def test_a_checkpoint_shows_what_it_changed(driver: Driver, operator: Client) -> None:
    run = completed(driver)
    first = page(operator, f"/runs/{run.pk}/checkpoints/0/")
    assert "saved when the run started" in first
    second = page(operator, f"/runs/{run.pk}/checkpoints/1/")
    assert "Changed since checkpoint 0" in second
    assert "state.looked" in second
    assert operator.get(f"/runs/{run.pk}/checkpoints/99/").status_code == 404


def test_history_in_pages(driver: Driver, operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run = completed(driver)
    shown = page(operator, f"/runs/{run.pk}/history/")
    assert "claims to be assistant" in shown
    assert "The history is empty." in page(operator, f"/runs/{run.pk}/history/?first=5000")


def test_retry_makes_the_person_a_requester(driver: Driver, person: Callable[..., User]) -> None:
    run = failed(driver)
    user = person("operator", "operator")
    client = browser(user)
    shown = page(client, f"/runs/{run.pk}/")
    assert "no such account" in shown
    assert "Retry from checkpoint" in shown
    assert client.post(f"/runs/{run.pk}/retry/").status_code == 302
    assert RunHead.objects.get(run=run).status == RunStatus.QUEUED
    assert run.requesters.filter(pk=user.pk).exists()
    assert client.post(f"/runs/{run.pk}/retry/").status_code == 409


def test_cancel_with_a_reason(driver: Driver, operator: Client) -> None:
    run = driver.start("test/steps")
    assert operator.post(f"/runs/{run.pk}/cancel/", {"reason": "withdrawn"}).status_code == 302
    shown = page(operator, f"/runs/{run.pk}/")
    assert "Cancelled" in shown
    assert "withdrawn" in shown


def test_a_fork_shows_what_the_parent_did(driver: Driver, operator: Client) -> None:
    run = completed(driver)
    refused = operator.post(f"/runs/{run.pk}/fork/", {"checkpoint": 0})
    assert refused.status_code == 409
    assert "test/send" in refused.content.decode()
    done = operator.post(f"/runs/{run.pk}/fork/", {"checkpoint": 0, "acknowledged": "on"})
    assert done.status_code == 302
    fork = Run.objects.exclude(pk=run.pk).get()
    assert done["Location"] == f"/runs/{fork.pk}/"
    assert "checkpoint 0 of another run" in page(operator, f"/runs/{fork.pk}/")
    assert operator.post(f"/runs/{run.pk}/fork/", {"checkpoint": "x"}).status_code == 400


def test_reviewers_read_and_do_not_operate(driver: Driver, reviewer: User) -> None:
    run = driver.start("test/steps")
    client = browser(reviewer)
    assert "Cancel the run" not in page(client, f"/runs/{run.pk}/")
    for action in ("cancel", "retry", "fork"):
        assert client.post(f"/runs/{run.pk}/{action}/", {"checkpoint": 0}).status_code == 403
    assert RunHead.objects.get(run=run).status == RunStatus.QUEUED


def test_an_administrator_of_the_team_sees_metadata_only(driver: Driver, person: Callable[..., User]) -> None:
    run = completed(driver)
    client = browser(person("boss", "admin"))
    shown = page(client, f"/runs/{run.pk}/")
    assert "for the reviewers, operators and auditors of its team" in shown
    assert "because" not in shown
    assert client.get(f"/runs/{run.pk}/checkpoints/0/").status_code == 404


def test_the_list_filters_and_pages(driver: Driver, operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runs.views.PAGE", 2)
    runs = [driver.start("test/steps") for _ in range(5)]
    completed_run = completed(driver)
    seen: list[Run] = []
    query = ""
    while True:
        context = operator.get(f"/runs/?{query}").context
        seen += [run for run, _ in context["rows"]]
        query = context["following"]
        if not query:
            break
    assert [run.pk for run in seen] == [run.pk for run in [completed_run, *reversed(runs)]]
    assert len(operator.get("/runs/?status=completed").context["rows"]) == 1
    assert len(operator.get(f"/runs/?q={runs[0].pk}").context["rows"]) == 1


def test_a_wait_without_a_deadline_is_in_sight(
    driver: Driver, operator: Client, reviewer: User, move_clock: Callable[[timedelta], None]
) -> None:
    """aws-samples document processing#755: what waited for ever was nowhere to be seen.

    A question without a deadline stands in the inbox with its age; a wait for an event among the suspended runs.
    """
    asking, waiting = driver.start("test/gate"), driver.start("test/branches")
    assert (driver.go_on(asking).reason, driver.go_on(waiting).reason) == ("approval", "event")
    approval = driver.pending(asking)["pay"]
    assert approval.expires_at is None
    move_clock(timedelta(days=400))
    sweep()

    inbox = page(browser(reviewer), "/")
    assert f"row-{approval.pk}" in inbox
    assert '<span class="row-due">asked ' in inbox
    assert "no deadline" in page(browser(reviewer), f"/approvals/{approval.pk}/")
    listed = {run.pk for run, _ in operator.get("/runs/?status=suspended").context["rows"]}
    assert listed == {asking.pk, waiting.pk}
    shown = page(operator, f"/runs/{waiting.pk}/")
    assert "Waits for something that the outside must tell it." in shown
    assert "waits at go" in shown
