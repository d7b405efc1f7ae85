"""The inbox's pages without a browser: who may, what a GET does, and how answers are refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals import canonical
from approvals.models import Approval, CardView, Vote
from approvals.states import ApprovalStatus
from runs.models import Agent, Membership, Run, RunHead, Team
from runs.states import RunKind, RunStatus
from tests.approvals.scenes import cast, events, in_group, opened, parked_run, policy
from tests.support.api import as_agent, suspension

pytestmark = pytest.mark.django_db(transaction=True)

BOT = "Mozilla/5.0 (compatible; SafeLinks/1.0; +https://scanner.example/bot)"
ACTIONS = ("vote", "undo", "settle", "claim", "release", "resolve")


def browser(user: User | None, *, csrf: bool = False, agent: str = "") -> Client:
    client = Client(enforce_csrf_checks=csrf, headers={"User-Agent": agent} if agent else None)
    if user is not None:
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def ballot(card: Approval, verdict: str = "approve", **more: str) -> dict[str, str]:
    return {"verdict": verdict, "review": card.review, **more}


# activepieces/activepieces#14252, n8n-io/n8n PR#28085
@pytest.mark.parametrize("signed_in", [True, False])
def test_getting_every_link_decides_nothing(agent: Agent, reviewer: User, signed_in: bool) -> None:
    card = opened(agent)
    client = browser(reviewer if signed_in else None, agent=BOT)
    paths = [f"/approvals/{card.pk}/", f"/approvals/{card.pk}/?answer=approve", f"/runs/{card.run_id}/", "/"]
    paths += [f"/approvals/{card.pk}/{action}/" for action in ACTIONS]
    for path in paths:
        assert client.get(path).status_code in {200, 302, 405}
        assert client.head(path).status_code in {200, 302, 405}
    card.refresh_from_db()
    assert card.status == ApprovalStatus.PENDING
    assert card.claimed_by is None
    assert not Vote.objects.exists()


def test_a_post_needs_its_token(agent: Agent, reviewer: User) -> None:
    card = opened(agent)
    assert browser(reviewer, csrf=True).post(f"/approvals/{card.pk}/vote/", ballot(card)).status_code == 403
    assert not Vote.objects.exists()


def test_a_post_without_javascript_comes_back_to_the_card(agent: Agent, reviewer: User) -> None:
    card = opened(agent)
    response = browser(reviewer).post(f"/approvals/{card.pk}/vote/", ballot(card))
    assert (response.status_code, response["Location"]) == (302, f"/approvals/{card.pk}/")
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.HELD


# mastra-ai/mastra#22575, windmill-labs/windmill PR#10262
def test_an_outsider_finds_nothing(agent: Agent) -> None:
    card = opened(agent, title="A secret title")
    outsider = User.objects.create_user("outsider")
    Membership.objects.create(user=outsider, team=Team.objects.create(name="Other"), roles=["reviewer", "operator"])
    client = browser(outsider)
    for path in (f"/approvals/{card.pk}/", f"/approvals/{card.pk}/progress/", f"/approvals/{card.pk}/row/"):
        assert client.get(path).status_code == 404
    for path in (f"/runs/{card.run_id}/", f"/runs/{card.run_id}/history/", f"/runs/{card.run_id}/checkpoints/0/"):
        assert client.get(path).status_code == 404
    for action in ACTIONS:
        assert client.post(f"/approvals/{card.pk}/{action}/", ballot(card)).status_code == 404
    for path in ("/", "/?tab=others", "/?tab=history", "/runs/", "/?q=secret"):
        assert "secret title" not in client.get(path).content.decode()
    assert '<span class="count">0</span>' in client.get("/").content.decode()
    assert Approval.objects.get(pk=card.pk).status == ApprovalStatus.PENDING


def test_an_agents_key_opens_no_page(agent: Agent) -> None:
    card = opened(agent)
    client = as_agent(agent).client
    response = client.post(f"/approvals/{card.pk}/vote/", ballot(card))
    assert response.status_code == 302
    assert response["Location"].startswith("/login")
    assert not Vote.objects.exists()


def test_who_asked_for_it_reads_and_cannot_decide(agent: Agent, reviewer: User) -> None:
    card = opened(agent)
    card.run.requesters.add(reviewer)
    page = browser(reviewer).get(f"/approvals/{card.pk}/").content.decode()
    assert "somebody else must decide" in page
    assert 'value="approve"' not in page
    response = browser(reviewer).post(f"/approvals/{card.pk}/vote/", ballot(card))
    assert response.status_code == 403
    assert "somebody else must decide" in response.content.decode()


def test_a_reviewer_from_another_team_sees_the_action_only(agent: Agent) -> None:
    policy(agent, "Money", ("finance", 1))
    card = opened(agent, description="Because of the jug.")
    guest = in_group(User.objects.create_user("guest"), "finance")
    page = browser(guest).get(f"/approvals/{card.pk}/").content.decode()
    assert "Because of the jug." in page
    assert "are for its own team" in page


def test_looking_at_a_card_is_noted_once(
    agent: Agent, reviewer: User, start_of_next: Callable[[timedelta], None]
) -> None:
    card = opened(agent)
    start_of_next(timedelta(minutes=15))
    for _ in range(3):
        browser(reviewer).get(f"/approvals/{card.pk}/")
    assert CardView.objects.filter(approval=card, viewer=reviewer).count() == 1


@pytest.mark.parametrize("verdict", ["", "approve ", "APPROVE", "null", "yes"])
def test_what_is_no_verdict_decides_nothing(agent: Agent, reviewer: User, verdict: str) -> None:
    card = opened(agent)
    assert browser(reviewer).post(f"/approvals/{card.pk}/vote/", ballot(card, verdict)).status_code == 400
    assert not Vote.objects.exists()


def test_a_stale_digest_is_a_conflict(agent: Agent, reviewer: User) -> None:
    card = opened(agent)
    response = browser(reviewer).post(f"/approvals/{card.pk}/vote/", {**ballot(card), "review": "0" * 64})
    assert response.status_code == 409
    assert "This card has changed" in response.content.decode()


def test_a_missing_reason_keeps_the_form(agent: Agent, reviewer: User) -> None:
    policy(agent, "Reasons", (None, 1), require_reason=True)
    card = opened(agent)
    response = browser(reviewer).post(f"/approvals/{card.pk}/vote/", ballot(card, message=" "))
    assert response.status_code == 400
    assert "must say something" in response.content.decode()


def test_a_password_where_the_policy_wants_one(agent: Agent, reviewer: User) -> None:
    policy(agent, "Sure", (None, 1), require_reauthentication=True)
    card = opened(agent)
    client = browser(reviewer)
    assert client.post(f"/approvals/{card.pk}/vote/", ballot(card)).status_code == 403
    wrong = client.post(f"/approvals/{card.pk}/vote/", ballot(card, password="wrong"))
    assert (wrong.status_code, "not your password" in wrong.content.decode()) == (403, True)
    right = client.post(f"/approvals/{card.pk}/vote/", ballot(card, password="correct horse battery"))
    assert right.status_code == 302


def test_tabs_sort_the_cards(agent: Agent, person: Callable[..., User]) -> None:
    me, other = person("me"), person("other")
    unclaimed, mine, theirs, voted, done = (opened(agent, title=f"Card {n}") for n in range(5))
    client = browser(me)
    client.post(f"/approvals/{mine.pk}/claim/")
    browser(other).post(f"/approvals/{theirs.pk}/claim/")
    client.post(f"/approvals/{voted.pk}/vote/", ballot(voted))
    cast(done, other)
    expected = {"mine": [mine], "unclaimed": [unclaimed], "others": [theirs, voted], "history": [done], "attention": []}
    for tab, cards in expected.items():
        rows = client.get(f"/?tab={tab}").context["rows"]
        assert [row.approval.pk for row in rows] == [card.pk for card in cards], tab
    assert client.get("/").context["tab"].name == "mine"


def test_pages_of_a_queue_miss_and_repeat_nothing(
    agent: Agent, reviewer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("approvals.presentation.inbox.PAGE", 2)
    cards = {opened(agent, title=f"Card {n}").pk for n in range(5)}
    seen: list[object] = []
    query = "tab=unclaimed"
    while query:
        context = browser(reviewer).get(f"/?{query}").context
        seen += [row.approval.pk for row in context["rows"]]
        query = context["next_query"]
    assert len(seen) == 5
    assert set(seen) == cards


@pytest.mark.parametrize("query", ["q=photo", "q=A-7", "agent=agent", "tool=refund", "risk=low", "q=Größe"])
def test_search_and_filters(agent: Agent, reviewer: User, query: str) -> None:
    opened(agent, description="No photo.", args={"order": "A-7", "size": "Größe"})
    client = browser(reviewer)
    assert len(client.get(f"/?{query}").context["rows"]) == 1
    assert len(client.get(f"/?{query}&q=nothing-like-it").context["rows"]) == 0


@pytest.mark.parametrize(
    "query", ["tab=none", "risk=dire", "due=soon", "after=x", "since=x", "q=%00", "q=" + "x" * 5000, "agent=%FF"]
)
def test_an_odd_address_is_no_error(agent: Agent, reviewer: User, query: str) -> None:
    opened(agent)
    assert browser(reviewer).get(f"/?{query}").status_code == 200
    assert browser(reviewer).get(f"/inbox/news/?{query}").status_code == 200
    assert browser(reviewer).get(f"/runs/?{query}&status=odd&agent={uuid4()}").status_code == 200


def test_news_count_what_came_since(agent: Agent, reviewer: User) -> None:
    client = browser(reviewer)
    since = client.get("/").context["since"]
    opened(agent)
    assert "Show 1 new card" in client.get("/inbox/news/", {"since": since}).content.decode()


def test_no_arguments_are_said(agent: Agent, reviewer: User) -> None:
    card = opened(agent, args={})
    assert "No arguments." in browser(reviewer).get(f"/approvals/{card.pk}/").content.decode()


def test_the_same_rejected_before_is_shown_with_its_reason(agent: Agent, person: Callable[..., User]) -> None:
    ben = person("ben")
    cast(opened(agent), ben, "reject", message="Signed for.")
    page = browser(ben).get(f"/approvals/{opened(agent).pk}/").content.decode()
    assert "Exactly this was rejected" in page
    assert "Signed for." in page


# In the form of AWS's keys, and split, so that no scanner takes this file for a leak.
KEY = "AKIA" + "IOSFODNN7QWERTYU"


def test_a_credential_is_masked_until_somebody_is_on_record_for_looking(agent: Agent, reviewer: User) -> None:
    # Today's rules refuse it when it is asked; a rule that is younger than the card was not there to do so.
    card = opened(agent)
    first = card.revisions.get()
    card.pk, card.run, card.args = uuid4(), parked_run(agent), canonical.dumps({"order": "A-7", "key": KEY})
    card.description, card.title = f"Uses {KEY}.", f"With {KEY}"
    card.save(force_insert=True)
    first.pk, first.approval, first.args = None, card, card.args
    first.save(force_insert=True)
    client = browser(reviewer)
    for path in (
        "/",
        f"/approvals/{card.pk}/",
        f"/approvals/{card.pk}/?answer=edit&mode=json",
        f"/runs/{card.run_id}/",
    ):
        assert KEY not in client.get(path).content.decode()
    shown = client.post(f"/approvals/{card.pk}/reveal/").content.decode()
    assert KEY in shown
    assert events(card)[-1] == "content.revealed"


@pytest.mark.parametrize("looked_at", [1, 1000])
def test_several_at_once_each_with_its_own_digest_and_result(
    agent: Agent, person: Callable[..., User], monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    monkeypatch.setattr("approvals.queries.queue.LOOKED_AT", looked_at)
    me, other = person("me"), person("other")
    first, second, third = (opened(agent, args={"order": f"A-{n}"}, title=f"Refund A-{n}") for n in range(3))
    odd = opened(agent, args={"order": "A\u200b-9"}, title="Refund an odd one")
    opened(agent, tool="coupon", title="Another tool")
    opened(agent, risk="high", title="A grave one")
    client = browser(me)
    assert "and 3 more like it" in client.get(f"/approvals/{first.pk}/").content.decode()
    page = client.get(f"/approvals/{first.pk}/alike/").content.decode()
    for title, is_there in (("Refund A-2", True), ("odd one", True), ("Another tool", False), ("A grave one", False)):
        assert (title in page) == is_there, title
    cast(second, other)
    posted = {
        "verdict": "approve",
        "card": [str(card.pk) for card in (first, second, third)],
        f"review.{first.pk}": first.review,
        f"review.{second.pk}": second.review,
        f"review.{third.pk}": odd.review,
    }
    result = client.post(f"/approvals/{first.pk}/alike/", posted).content.decode()
    assert "Already approved by other" in result
    assert "This card has changed" in result
    statuses = Approval.objects.in_bulk([first.pk, second.pk, third.pk])
    assert statuses[first.pk].status == ApprovalStatus.HELD
    assert statuses[third.pk].status == ApprovalStatus.PENDING
    assert client.post(f"/approvals/{third.pk}/alike/", {"verdict": "approve"}).status_code == 400


def test_high_risk_is_never_decided_in_bulk(agent: Agent, reviewer: User) -> None:
    card, _ = opened(agent, risk="high"), opened(agent, risk="high")
    client = browser(reviewer)
    assert "more like it" not in client.get(f"/approvals/{card.pk}/").content.decode()
    assert "Nothing to decide together" in client.get(f"/approvals/{card.pk}/alike/").content.decode()


@pytest.mark.parametrize("end", ["cancel", "finish"])
def test_a_run_that_ended_leaves_nothing_to_approve(agent: Agent, reviewer: User, end: str) -> None:
    """C19, nimbalyst#1183: a finished session kept 26 approvable requests, and the badge counted them."""
    caller, client = as_agent(agent), browser(reviewer)
    run = caller.post("/suspensions", suspension()).json()["run"]["id"]
    card = Approval.objects.get(run=run)
    assert '<span class="count">1</span>' in client.get("/").content.decode()
    if end == "finish":  # an agent can finish a run once its questions are answered
        cast(card, reviewer)
    assert caller.post(f"/runs/{run}/{end}", {"result": "done"} if end == "finish" else {}).status_code == 200

    inbox = client.get("/").content.decode()
    assert '<span class="count">0</span>' in inbox
    assert f"row-{card.pk}" not in inbox
    late = client.post(f"/approvals/{card.pk}/vote/", ballot(card))  # an old tab
    assert late.status_code == 409
    assert ("the run was cancelled" if end == "cancel" else "Already approved by reviewer") in late.content.decode()
    spent = caller.post(f"/approvals/{card.pk}/consume")
    assert (spent.status_code, spent.json()["code"]) == (409, "not_approved" if end == "cancel" else "void")


def test_a_run_in_trouble_that_asked_nothing_needs_attention_too(agent: Agent, reviewer: User, client: Client) -> None:
    run = Run.objects.create(team=agent.team, agent=agent, kind=RunKind.HOSTED, title="Nightly sums")
    RunHead.objects.create(run=run, status=RunStatus.BLOCKED, detail="workflow 'sums' is not registered")
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    page = client.get("/?tab=attention").content.decode()
    assert f'href="/runs/{run.pk}/"' in page
    assert 'Needs attention <span class="count">1</span>' in page
    assert "Nothing is wrong" not in page
    stranger = User.objects.create_user("stranger")
    Membership.objects.create(user=stranger, team=Team.objects.create(name="Elsewhere"), roles=["reviewer"])
    client.force_login(stranger, backend="django.contrib.auth.backends.ModelBackend")
    assert str(run.pk) not in client.get("/?tab=attention").content.decode()
