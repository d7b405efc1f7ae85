"""The pages of people, groups, agents and keys: who confirms sees all of it, and everybody what is changed alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.models import RuleChange
from approvals.services.changes import confirm, confirm_alone
from approvals.services.guarding import propose_members, propose_roles
from runs.models import Agent, AgentKey, Membership, Team
from runs.services.agents import issue_key
from tests.approvals.scenes import in_group, policy
from tests.support.api import Caller
from tests.support.pages import browser, text

pytestmark = pytest.mark.django_db

NEW = "a stapler under the willow"


@pytest.fixture
def amy(person: Callable[..., User]) -> Client:
    return browser(person("amy", "admin"))


@pytest.fixture
def ann(person: Callable[..., User]) -> Client:
    return browser(person("ann", "admin"))


def test_who_confirms_sees_all_of_it(agent: Agent, amy: Client, ann: Client, team: Team, person) -> None:
    policy(agent, "Money", ("finance", 1))
    fay = person("fay", "operator")
    fay.first_name, fay.last_name = "Ann", "Admin"  # who calls herself like another is still told apart
    fay.save()
    in_group(person("eve", "operator"), "finance")
    made = amy.post(f"/people/teams/{team.pk}/groups/propose/", {"group": "finance", "add": "fay", "remove": "eve"})
    change = RuleChange.objects.get()
    assert made["Location"] == f"/rules/changes/{change.pk}/"
    page = text(ann, made["Location"])
    for said in (
        "Members of the group: finance",
        "Joins Ann Admin (fay)",
        "Leaves eve",
        "In it now eve",
        "Proposed by amy",
    ):
        assert said in page
    assert "It was you who proposed it: another administrator must confirm it." in text(amy, made["Location"])

    assert ann.post(f"/rules/changes/{change.pk}/confirm/").status_code == 302

    page = text(ann, made["Location"])
    assert "Confirmed by ann" in page
    assert "In the audit trail" in page
    event = re.search(r'href="(/audit/\?team[^"]+)"', ann.get(made["Location"]).content.decode())
    assert event is not None
    assert "person.changed" in text(ann, event[1].replace("&amp;", "&"))
    assert "Decides" in text(ann, "/people/")


def test_a_stale_proposal_and_ones_own_are_refused_on_the_page(amy: Client, ann: Client, team: Team, person) -> None:
    bob = person("bob", "operator")
    amy.post(f"/people/teams/{team.pk}/roles/propose/", {"person": "bob", "reviewer": "on"})
    change = RuleChange.objects.get()
    own = amy.post(f"/rules/changes/{change.pk}/confirm/")
    assert (own.status_code, "It was you who proposed it" in own.content.decode()) == (403, True)
    Membership.objects.filter(user=bob).update(roles=["auditor"])
    stale = ann.post(f"/rules/changes/{change.pk}/confirm/")
    assert (stale.status_code, "no longer what it was" in stale.content.decode()) == (409, True)


def test_the_form_starts_from_what_is(amy: Client, team: Team, agent: Agent, person) -> None:
    agent.owners.add(person("bob", "operator"))
    form = amy.get(f"/people/teams/{team.pk}/roles/propose/?person=bob").content.decode()
    assert re.search(r'name="operator"[^>]*checked', form)
    assert not re.search(r'name="reviewer"[^>]*checked', form)
    assert ">\nbob</textarea>" in amy.get(f"/people/agents/{agent.pk}/propose/").content.decode()


@pytest.mark.parametrize(
    ("path", "fields", "said"),
    [
        (
            "teams/{team}/roles",
            {"person": "nobody", "reviewer": "on"},
            "names nobody who has an active account: nobody",
        ),
        ("teams/{team}/roles", {}, "This field is required"),
        ("teams/{team}/roles", {"person": "amy", "admin": "on"}, "The roles are what they have already."),
        ("teams/{team}/groups", {"group": "finance", "add": "nobody"}, "names nobody"),
        ("agents/{agent}", {"team": "Nowhere"}, "does not exist"),
        ("agents/{agent}/keys", {"scopes": "everything"}, "do not exist: everything"),
        ("agents/{agent}/keys", {"scopes": "runs:read", "expires_at": "2020-01-01T00:00"}, "must be later than now"),
    ],
)
def test_what_makes_no_sense_is_said_at_its_field(amy: Client, team, agent, path, fields, said) -> None:
    response = amy.post(f"/people/{path.format(team=team.pk, agent=agent.pk)}/propose/", fields)
    assert response.status_code == 400
    assert said in response.content.decode()
    assert not RuleChange.objects.exists()


def test_a_key_is_shown_once_and_works_once_confirmed(agent: Agent, amy: Client, ann: Client) -> None:
    shown = amy.post(f"/people/agents/{agent.pk}/keys/propose/", {"scopes": "approvals:read"}).content.decode()
    key = re.search(r"fmt_[a-z0-9]{12}_[\w-]+", shown)
    assert key is not None
    change = RuleChange.objects.get()
    for client in (amy, ann):
        assert key[0] not in client.get(f"/rules/changes/{change.pk}/").content.decode()
        assert key[0] not in client.get("/people/").content.decode()
    ann.post(f"/rules/changes/{change.pk}/confirm/")
    assert Caller(f"Bearer {key[0]}").get("/approvals").status_code == 200
    amy.post(f"/people/keys/{AgentKey.objects.get().pk}/revoke/")
    assert Caller(f"Bearer {key[0]}").get("/approvals").status_code == 401


def test_a_reset_link_is_shown_once_and_works_once_confirmed(
    amy: Client, ann: Client, team: Team, reviewer: User
) -> None:
    shown = amy.post(f"/people/teams/{team.pk}/members/{reviewer.pk}/reset/").content.decode()
    link = re.search(r"/password/[\w-]+/", shown)
    assert link is not None
    assert "once another administrator, or a superuser, has confirmed it" in shown
    assert Client().get(link[0]).status_code == 404
    ann.post(f"/rules/changes/{RuleChange.objects.get().pk}/confirm/")
    visitor = Client()
    form = visitor.get(link[0])["Location"]
    assert visitor.post(form, {"password": NEW, "again": NEW}).status_code == 200
    assert Client().get(link[0]).status_code == 404


def test_getting_changes_nothing(agent: Agent, amy: Client, team: Team, reviewer: User) -> None:
    key = issue_key(agent=agent).key
    for path in (f"keys/{key.pk}/revoke/", f"teams/{team.pk}/members/{reviewer.pk}/reset/"):
        assert amy.get(f"/people/{path}").status_code == 405
    assert not RuleChange.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_what_is_changed_alone_is_at_the_head_of_every_page_for_a_week(team: Team, person, move_clock) -> None:
    amy, other = person("amy", "admin"), Team.objects.create(name="Elsewhere")
    change = propose_roles(team=team, by=amy, person="amy", roles=["admin", "reviewer"])
    confirm_alone(change_id=change.pk, by=amy, reason="Nobody <b>else</b> is here.")
    people = {name: person(name, role) for name, role in (("rob", "reviewer"), ("ann", "admin"), ("olga", "operator"))}
    stranger = User.objects.create_user("stranger")
    Membership.objects.create(user=stranger, team=other, roles=["admin", "reviewer"])
    people |= {"stranger": stranger, "root": User.objects.create_superuser("root"), "amy": amy}
    clients = {name: browser(user) for name, user in people.items()}

    heads = {name: "amy changed this alone" in text(client, "/runs/") for name, client in clients.items()}

    assert heads == {"amy": True, "ann": True, "rob": True, "root": True, "olga": False, "stranger": False}
    page = clients["ann"].get("/").content.decode()
    assert "Roles: amy" in page
    assert "“Nobody &lt;b&gt;else" in page
    event = re.search(r'class="changed-alone".*?href="(/audit/[^"]+)"', page, re.DOTALL)
    assert event is not None
    assert "confirmed alone" in text(clients["ann"], event[1].replace("&amp;", "&"))
    assert "/audit/?team" not in clients["rob"].get("/").content.decode()
    move_clock(timedelta(days=7, seconds=1))
    assert "amy changed this alone" not in text(clients["rob"], "/runs/")


def test_an_ordinary_confirmation_is_no_alarm(team: Team, person) -> None:
    amy, ann = person("amy", "admin"), person("ann", "admin")
    person("bob", "operator")
    propose_members(team=team, by=amy, group="newsletter", add=["bob"])
    confirm(change_id=propose_roles(team=team, by=amy, person="bob", roles=["reviewer"]).pk, by=ann)
    assert "changed this alone" not in text(browser(amy), "/")
