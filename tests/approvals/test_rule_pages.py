"""The pages of the rules and of standing in: who reads, who proposes, who confirms, and how a refusal is said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from approvals.errors import NotEligible
from approvals.models import AutomaticRule, AutomaticStop, Delegation, Policy, RuleChange
from approvals.services.delegating import delegate
from runs.clock import database_now
from runs.models import Agent, Membership, Team
from tests.approvals.scenes import cast, in_group, opened, policy
from tests.support.pages import browser

pytestmark = pytest.mark.django_db

POLICY = {
    "name": "Money",
    "tools": "refund\npay.*",
    "quorum": "1 of the team\n2 of finance",
    "rejections": "1",
    "deadline": "1 day 2 h",
    "escalation": "finance for 90 min",
    "allow_edits": "on",
}
RULE = {"name": "Small", "tools": "refund", "window": "1 day", "max_count": "5", "ends_at": "2100-01-01T00:00"}


@pytest.fixture
def amy(person: Callable[..., User]) -> Client:
    Group.objects.create(name="finance")
    return browser(person("amy", "admin"))


@pytest.fixture
def ann(person: Callable[..., User]) -> Client:
    return browser(person("ann", "admin"))


def test_a_policy_is_proposed_by_one_and_confirmed_by_another(amy: Client, ann: Client, team: Team) -> None:
    assert amy.post(f"/rules/teams/{team.pk}/policies/propose/", POLICY).status_code == 302
    change = RuleChange.objects.get()
    page = amy.get("/rules/").content.decode()
    assert "1 of the team and 2 of finance" in page
    assert "1 day 2 h" in page
    assert "finance for 1 h 30 min" in page
    refused = amy.post(f"/rules/changes/{change.pk}/confirm/")
    assert refused.status_code == 403
    assert "It was you who proposed it" in refused.content.decode()
    assert ann.post(f"/rules/changes/{change.pk}/confirm/").status_code == 302
    money = Policy.objects.get(name="Money")
    assert money.versions.get().tools == ["refund", "pay.*"]
    late = amy.post(f"/rules/changes/{change.pk}/withdraw/")
    assert late.status_code == 409
    assert "ann has confirmed it already" in late.content.decode()


def test_the_next_version_starts_from_the_newest(agent: Agent, amy: Client, ann: Client, team: Team) -> None:
    money = policy(agent, "Money", ("finance", 2), tools=["refund"], grant_life=timedelta(minutes=90))
    form = amy.get(f"/rules/teams/{team.pk}/policies/propose/?from={money.pk}").content.decode()
    assert "2 of finance" in form
    assert 'value="1 h 30 min"' in form
    assert amy.post(f"/rules/policies/{money.pk}/switch/").status_code == 302
    ann.post(f"/rules/changes/{RuleChange.objects.get().pk}/confirm/")
    money.refresh_from_db()
    assert not money.is_active
    page = ann.get(f"/rules/policies/{money.pk}/").content.decode()
    assert "Version 2" in page
    assert "Not in force" in page


def test_a_proposal_says_who_is_in_the_groups_that_it_names(amy: Client, team: Team, person) -> None:
    """While no policy named the group, one administrator alone could fill it."""
    in_group(person("mallory"), "finance")
    amy.post(f"/rules/teams/{team.pk}/policies/propose/", POLICY)
    assert '<dt>In finance now</dt><dd class="said">mallory</dd>' in amy.get("/rules/").content.decode()


def test_a_proposal_says_what_it_changes(agent: Agent, amy: Client, team: Team) -> None:
    policy(agent, "Money", (None, 1), tools=["refund", "pay.*"], require_reason=True)
    amy.post(f"/rules/teams/{team.pk}/policies/propose/", POLICY)
    page = amy.get("/rules/").content.decode()
    assert '1 of the team and 2 of finance <span class="quiet">instead of 1 of the team</span>' in page
    assert 'nothing <span class="quiet">instead of must be given</span>' in page
    assert "refund, pay.*, by every agent <span" not in page


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"quorum": "two of finance"}, "is not like"),
        ({"quorum": "1 of nobodies"}, "a group that exists"),
        ({"escalation": "finance"}, "is not like"),
        ({"deadline": "soon"}, "must be a length of time"),
        ({"tools": "a*b"}, "beginning followed by *"),
        ({"condition": '{"type":"nonsense"}'}, "field-error"),
    ],
)
def test_what_makes_no_sense_is_said_at_its_field(amy: Client, team: Team, changed: dict[str, str], said: str) -> None:
    response = amy.post(f"/rules/teams/{team.pk}/policies/propose/", POLICY | changed)
    assert response.status_code == 400
    assert said in response.content.decode()
    assert not RuleChange.objects.exists()


def test_the_only_administrator_says_why(amy: Client, team: Team) -> None:
    amy.post(f"/rules/teams/{team.pk}/policies/propose/", POLICY)
    change = RuleChange.objects.get()
    assert "you are the only one" in amy.get("/rules/").content.decode()
    assert amy.post(f"/rules/changes/{change.pk}/confirm/", {"reason": "Nobody else is here."}).status_code == 302
    change.refresh_from_db()
    assert (change.alone, change.reason) == (True, "Nobody else is here.")


def test_automatic_rules_stop_at_once_and_go_on_with_two(
    amy: Client, ann: Client, person: Callable[..., User], team: Team
) -> None:
    amy.post(f"/rules/teams/{team.pk}/automatic/propose/", RULE)
    ann.post(f"/rules/changes/{RuleChange.objects.get().pk}/confirm/")
    rule = AutomaticRule.objects.get()
    assert "5 for each agent in 1 day" in amy.get("/rules/").content.decode()
    operator = browser(person("olga", "operator"))
    assert operator.post(f"/rules/teams/{team.pk}/automatic/stop/", {"reason": "Too many."}).status_code == 302
    assert "Too many." in amy.get("/rules/").content.decode()
    assert operator.post(f"/rules/teams/{team.pk}/automatic/lift/").status_code == 403
    assert amy.post(f"/rules/teams/{team.pk}/automatic/lift/").status_code == 302
    ann.post(f"/rules/changes/{RuleChange.objects.get(outcome='').pk}/confirm/")
    assert AutomaticStop.objects.get().lifted_at is not None
    amy.post(f"/rules/automatic/{rule.pk}/end/")
    ann.post(f"/rules/changes/{RuleChange.objects.get(outcome='').pk}/confirm/")
    rule.refresh_from_db()
    assert not rule.is_active


def test_getting_changes_nothing(amy: Client, team: Team) -> None:
    amy.post(f"/rules/teams/{team.pk}/policies/propose/", POLICY)
    change = RuleChange.objects.get()
    for path in ("confirm", "withdraw"):
        assert amy.get(f"/rules/changes/{change.pk}/{path}/").status_code == 405
    assert amy.get(f"/rules/teams/{team.pk}/automatic/stop/").status_code == 405
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="amy"), backend="django.contrib.auth.backends.ModelBackend")
    assert client.post(f"/rules/teams/{team.pk}/automatic/stop/").status_code == 403
    assert not AutomaticStop.objects.exists()


def test_hostile_names_are_shown_as_text(amy: Client, team: Team) -> None:
    amy.post(f"/rules/teams/{team.pk}/policies/propose/", POLICY | {"name": "<script>alert(1)</script>"})
    page = amy.get("/rules/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_a_reviewer_lets_another_vote_and_ends_it(person: Callable[..., User]) -> None:
    ada, bob, amy = person("ada"), person("bob"), person("amy", "admin")
    now = database_now()
    asked = {"taker": str(bob.pk), "starts_at": f"{now:%Y-%m-%dT%H:%M}"}
    late = browser(ada).post("/delegations/", asked | {"ends_at": f"{now + timedelta(days=91):%Y-%m-%dT%H:%M}"})
    assert late.status_code == 403
    assert "within 90 days" in late.content.decode()
    made = browser(ada).post("/delegations/", asked | {"ends_at": f"{now + timedelta(days=7):%Y-%m-%dT%H:%M}"})
    assert made.status_code == 302
    given = Delegation.objects.get()
    assert (given.giver, given.taker) == (ada, bob)
    assert "for <strong" in browser(bob).get("/delegations/").content.decode()
    assert browser(bob).post(f"/delegations/{given.pk}/confirm/").status_code == 403
    assert browser(amy).post(f"/delegations/{given.pk}/confirm/").status_code == 302
    assert "High risk too" in browser(ada).get("/delegations/").content.decode()
    assert browser(bob).post(f"/delegations/{given.pk}/end/").status_code == 302
    assert "Nobody stands in" in browser(ada).get("/delegations/").content.decode()


def test_an_administrator_arranges_a_stand_in_for_somebody_else(agent: Agent, person: Callable[..., User]) -> None:
    ada, sam = person("ada"), person("sam", "operator")
    amy, ann = person("amy", "admin"), person("ann", "admin")
    now = database_now()
    asked = {
        "taker": str(sam.pk),
        "starts_at": f"{now:%Y-%m-%dT%H:%M}",
        "ends_at": f"{now + timedelta(days=7):%Y-%m-%dT%H:%M}",
    }
    assert browser(sam).post("/delegations/", asked | {"giver": str(ada.pk), "taker": str(ann.pk)}).status_code == 302
    assert not Delegation.objects.filter(giver=ada).exists()  # who administers nothing is not asked whose vote it is
    assert browser(amy).post("/delegations/", asked | {"giver": str(ada.pk)}).status_code == 302
    given = Delegation.objects.get(giver=ada)
    assert (given.taker, given.created_by) == (sam, amy)

    card = opened(agent)
    assert "Waits for another administrator" in browser(ada).get("/delegations/").content.decode()
    with pytest.raises(NotEligible):
        cast(card, sam)
    for nobody in (amy, ada, sam):
        assert browser(nobody).post(f"/delegations/{given.pk}/confirm/").status_code == 403
    assert browser(ann).post(f"/delegations/{given.pk}/confirm/").status_code == 302
    assert cast(card, sam).status == "approved"
    assert browser(amy).post(f"/delegations/{given.pk}/end/").status_code == 302


def test_others_delegations_do_not_exist(person: Callable[..., User]) -> None:
    ada, bob, now = person("ada"), person("bob"), database_now()
    given = delegate(giver=ada, taker=bob, starts_at=now, ends_at=now + timedelta(days=1), by=ada)
    outsider = User.objects.create_user("outsider")
    elsewhere = Team.objects.create(name="Other")
    Membership.objects.create(user=outsider, team=elsewhere, roles=["admin"])
    for client in (browser(person("cem")), browser(outsider)):
        assert client.post(f"/delegations/{given.pk}/end/").status_code == 404
    missing = browser(outsider).post("/delegations/", {"taker": str(ada.pk)})
    assert missing.status_code == 400
    given.refresh_from_db()
    assert given.revoked_at is None
