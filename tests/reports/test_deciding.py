"""Public reports about who decided what: each test does what its source did, through the same doors, and names it.

What only services can do at once is in tests/races; see the case numbers there too.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections

from approvals.models import Approval, Decision, Grant, Vote
from approvals.services.noticing import notify
from runs.engine.connection import engine_connection
from runs.engine.executor import execute
from runs.models import Agent, Membership, RunHead, Team
from tests.approvals.scenes import cast, events, opened
from tests.approvals.test_pages import ballot, browser
from tests.engine.conftest import Driver
from tests.engine.flows import CALLS, SWITCH
from tests.support.api import Caller, as_agent, as_person, suspension

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def driver(transactional_db: None, agent: Agent, reviewer: User) -> Driver:
    CALLS.clear()
    SWITCH.clear()
    return Driver(agent, reviewer)


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """All at the same moment, each on a connection of its own."""
    barrier = threading.Barrier(len(acts))

    def run(act: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            barrier.wait(60)
            return act()
        finally:
            connections.close_all()
            engine_connection().close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def api_vote(caller: Caller, approval: Approval, verdict: str = "approve", **more: Any) -> Any:
    return caller.post(f"/approvals/{approval.pk}/votes", {"type": verdict, "review": approval.review, **more})


def test_twenty_approve_at_once_and_two_tabs_besides(driver: Driver, person: Callable[..., User]) -> None:
    """C01, mastra#20443: an operator approved a gate twice, and both resumes went on."""
    run = driver.start("test/gate")
    driver.go_on(run)
    approval = driver.pending(run)["pay"]
    voters = [as_person(person(f"p{n}")) for n in range(20)]
    ada = person("ada")
    tabs = [browser(ada), browser(ada)]

    answers = at_once(
        *(partial(api_vote, voter, approval) for voter in voters),
        *(partial(tab.post, f"/approvals/{approval.pk}/vote/", ballot(approval)) for tab in tabs),
    )
    if Approval.objects.get(pk=approval.pk).status == "held":  # a tab was first: it may still take it back
        browser(ada).post(f"/approvals/{approval.pk}/undo/")
        answers.append(api_vote(voters[0], approval))

    assert sum(answer.status_code == 201 for answer in answers) == 1
    losers = [answer.json() for answer in answers[:20] if answer.status_code != 201]
    assert {(loser["code"], loser["outcome"], bool(loser["by"])) for loser in losers} == {
        ("already_decided", "approved", True)
    }
    at_once(*(partial(execute, run.id, worker=name) for name in ("a", "b")))
    driver.go_on(run)
    assert CALLS["pay 1.00"] == 1
    assert Decision.objects.filter(approval=approval).count() == events(approval).count("approval.settled") == 1


def test_one_approves_on_the_page_while_another_rejects_over_the_api(agent: Agent, person: Callable[..., User]) -> None:
    """C02, heym#563: concurrent reviewers both got success, one overwriting the other."""
    ada, bob = person("ada"), person("bob")
    page, api = browser(ada), as_person(bob)
    for n in range(50):
        approval = opened(agent, args={"order": n})
        path = f"/approvals/{approval.pk}/vote/"
        clicked, rejected = at_once(
            partial(page.post, path, ballot(approval)), partial(api_vote, api, approval, "reject")
        )

        if rejected.status_code == 201:
            assert clicked.status_code == 409
            assert "bob" in clicked.content.decode()
            assert Decision.objects.get(approval=approval).outcome == "rejected"
        else:
            assert (clicked.status_code, rejected.status_code) == (302, 409)
            assert (rejected.json()["by"], rejected.json()["outcome"]) == ("ada", "approved")
            assert Approval.objects.get(pk=approval.pk).status == "held"
        assert events(approval).count("attempt.refused") == 1


def test_a_rejection_after_the_call_was_made(driver: Driver, person: Callable[..., User]) -> None:
    """C02, teleport#5622: a request could be denied after its keys had been given out."""
    run = driver.start("test/gate")
    driver.go_on(run)
    approval = driver.pending(run)["pay"]
    driver.decide(approval)
    driver.go_on(run)

    late = api_vote(as_person(person("bob")), approval, "reject")

    assert (late.status_code, late.json()["outcome"], late.json()["by"]) == (409, "approved", "reviewer")
    assert events(approval)[-1] == "attempt.refused"
    assert Grant.objects.get(approval=approval).status == "succeeded"
    assert CALLS["pay 1.00"] == 1


@pytest.mark.parametrize("decision", [{}, None, 1, "approve ", ["approve"], "false"])
def test_what_is_no_decision_decides_nothing(driver: Driver, reviewer: User, decision: Any) -> None:
    """C04, pydantic-ai#8060, openai-agents-python#3337: a `None` decision executed the protected tool."""
    run = driver.start("test/gate")
    driver.go_on(run)
    approval = driver.pending(run)["pay"]
    api, page = as_person(reviewer), browser(reviewer)

    for body in (decision, {"type": decision, "review": approval.review}):
        assert api.post(f"/approvals/{approval.pk}/votes", body).status_code == 400
    if isinstance(decision, str):
        assert page.post(f"/approvals/{approval.pk}/vote/", ballot(approval, decision)).status_code == 400

    driver.go_on(run)
    assert CALLS["pay 1.00"] == 0
    assert Approval.objects.get(pk=approval.pk).status == "pending"


@pytest.mark.parametrize("args", [None, "", "absent"])
def test_arguments_that_are_none(agent: Agent, args: Any) -> None:
    """C04, openai-agents-python PR#4545: empty arguments went around a gate."""
    asked = suspension()
    asked["approvals"][0]["args"] = args
    if args == "absent":
        del asked["approvals"][0]["args"]
    answer = as_agent(agent).post("/suspensions", asked)
    assert answer.status_code == 400
    assert "/args" in str(answer.json()["errors"])
    assert not Approval.objects.exists()


def test_empty_arguments_are_shown_as_such(agent: Agent, reviewer: User) -> None:
    """C04."""
    approval = as_agent(agent).post("/suspensions", suspension(args={})).json()["approvals"][0]
    assert "no arguments" in browser(reviewer).get(f"/approvals/{approval['id']}/").content.decode().lower()


def test_somebody_from_outside_at_every_door(agent: Agent, person: Callable[..., User], mailoutbox: list[Any]) -> None:
    """C06, mastra#22575: any logged-in user could approve another's run."""
    ada = person("ada")
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    asked = suspension(title="A secret title")
    approval = Approval.objects.get(pk=as_agent(agent).post("/suspensions", asked).json()["approvals"][0]["id"])
    notify()
    link = re.search(r"https?://[^/\s]+(/\S+)", mailoutbox[0].body)
    assert link
    outsider = User.objects.create_user("outsider", password="correct horse battery", is_staff=True)
    Membership.objects.create(user=outsider, team=Team.objects.create(name="Other"), roles=["reviewer", "auditor"])
    page, api = browser(outsider), as_person(outsider)

    run = approval.run_id
    for path in (link[1], f"/approvals/{approval.pk}/", f"/runs/{run}/", f"/admin/approvals/approval/{approval.pk}/"):
        assert page.get(path).status_code in (403, 404), path
    for path in (f"/approvals/{approval.pk}", f"/runs/{run}", f"/runs/{run}/snapshot", f"/runs/{run}/timeline"):
        assert api.get(path).status_code == 404, path
    assert page.post(f"/approvals/{approval.pk}/vote/", ballot(approval)).status_code == 404
    assert api_vote(api, approval).status_code == 404
    exported = page.post("/audit/export/", {"format": "jsonl"})
    told = [page.get(path).content.decode() for path in ("/", "/?tab=others", "/runs/", "/audit/", "/?q=secret")]
    told += [api.get("/approvals").content.decode(), b"".join(exported).decode()]
    for text in told:
        assert "secret title" not in text
        assert str(approval.pk) not in text
    assert '<span class="count">0</span>' in told[0]
    assert events(approval).count("attempt.refused") == 2
    assert Approval.objects.get(pk=approval.pk).status == "pending"


def test_the_agent_and_whoever_submitted_cannot_approve(
    agent: Agent, reviewer: User, person: Callable[..., User]
) -> None:
    """C06, windmill PR#10262: a requester approved their own through a second resume path."""
    caller = as_agent(agent)
    approval = Approval.objects.get(pk=caller.post("/suspensions", suspension()).json()["approvals"][0]["id"])
    approval.run.requesters.add(reviewer)

    assert api_vote(caller, approval).status_code == 403
    assert api_vote(as_person(reviewer), approval).status_code == 403
    assert browser(reviewer).post(f"/approvals/{approval.pk}/vote/", ballot(approval)).status_code == 403
    assert caller.post(f"/approvals/{approval.pk}/consume").json()["code"] == "not_approved"
    assert events(approval).count("attempt.refused") == 4
    assert not Vote.objects.exists()


@pytest.mark.parametrize("bot", ["Mozilla/5.0 (compatible; SafeLinks/1.0)", "Slackbot-LinkExpanding 1.0", "TeamsBot"])
def test_scanners_that_open_every_link_of_every_mail(
    agent: Agent, person: Callable[..., User], mailoutbox: list[Any], bot: str
) -> None:
    """C07, activepieces#14252, n8n PR#28085: mail scanners fetched approve links and resumed runs."""
    ada = person("ada")
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    approvals = [opened(agent, args={"order": n}) for n in range(2)]
    notify()
    links = [path for mail in mailoutbox for path in re.findall(r"https?://[^/\s]+(/\S*)", mail.body)]
    assert len(links) >= 2

    for client in (browser(None, agent=bot), browser(ada, agent=bot)):
        for link in links:
            assert client.get(link).status_code in (200, 302)
            assert client.head(link).status_code in (200, 302)
    assert (
        browser(ada, csrf=True, agent=bot).post(f"/approvals/{approvals[0].pk}/vote/", ballot(approvals[0])).status_code
        == 403
    )
    assert browser(None, agent=bot).post(f"/approvals/{approvals[0].pk}/vote/", ballot(approvals[0])).status_code == 302
    assert {a.status for a in Approval.objects.all()} == {"pending"}
    assert not Vote.objects.exists()


@pytest.mark.parametrize("end", ["cancel", "finish"])
def test_an_old_tab_after_the_run_is_over(agent: Agent, reviewer: User, person: Callable[..., User], end: str) -> None:
    """C19, nimbalyst#1183, airflow#55053: a finished session kept 26 approvable requests, and the badge was wrong."""
    caller, page = as_agent(agent), browser(reviewer)
    asked = suspension()
    asked["approvals"].append({**asked["approvals"][0], "key": "call_2"})
    run = caller.post("/suspensions", asked).json()["run"]["id"]
    approvals = list(Approval.objects.filter(run=run).order_by("key"))
    if end == "finish":
        for approval in approvals:
            cast(approval, person(f"by-{approval.key}"), "reject")
        assert caller.post(f"/runs/{run}/finish", {"result": 1}).status_code in (200, 201)
    else:
        assert caller.post(f"/runs/{run}/cancel", {}).status_code in (200, 201)

    for approval in approvals:
        stale = page.post(f"/approvals/{approval.pk}/vote/", ballot(approval))
        assert stale.status_code == 409
        assert api_vote(as_person(reviewer), approval).status_code == 409
        assert caller.post(f"/approvals/{approval.pk}/consume").status_code == 409
    assert '<span class="count">0</span>' in page.get("/").content.decode()
    assert caller.get("/approvals?status=pending").json()["results"] == []
    assert RunHead.objects.get(run=run).status in ("cancelled", "completed")


def test_the_same_request_again_and_a_key_that_is_used_again(agent: Agent) -> None:
    """C22, powercat-business-approvals-kit#292, capo-v1#124: retries sent duplicates; a reused key replayed the first
    answer, and the second request never ran."""
    caller = as_agent(agent)
    asked = suspension(args={"amount": 100})
    first = caller.post("/suspensions", asked, Idempotency_Key="k1")
    again = caller.post("/suspensions", asked, Idempotency_Key="k1")
    assert first.status_code == 201
    assert again.json() == first.json()

    asked["approvals"][0]["args"] = {"amount": 200}
    other = caller.post("/suspensions", asked, Idempotency_Key="k1")
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    assert Approval.objects.count() == 1


def test_the_same_request_in_parallel(agent: Agent) -> None:
    """C22, devlink PR#1200: six cards for three people."""
    caller, asked = as_agent(agent), suspension()
    answers = at_once(*(partial(caller.post, "/suspensions", asked, Idempotency_Key="k1") for _ in range(6)))

    made = {answer.json()["run"]["id"] for answer in answers if answer.status_code in (200, 201)}
    assert len(made) == 1
    assert {answer.status_code for answer in answers} <= {200, 201, 409}  # 409: the first is still being answered
    assert Approval.objects.count() == 1
    assert caller.post("/suspensions", asked, Idempotency_Key="k1").json()["run"]["id"] == made.pop()


def test_two_that_look_alike_stay_two(agent: Agent, reviewer: User) -> None:
    """C22: "Trolha" and "trolha", without a key, are two questions, and each card tells of the other."""
    caller = as_agent(agent)
    cards = [
        caller.post("/suspensions", suspension(args={"name": name})).json()["approvals"][0]["id"]
        for name in ("Trolha", "trolha")
    ]
    assert len(set(cards)) == 2
    for card in cards:
        assert "1 more like it" in browser(reviewer).get(f"/approvals/{card}/").content.decode()
