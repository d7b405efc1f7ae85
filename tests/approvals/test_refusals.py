"""Whoever tries what is not theirs to do leaves an event, though nothing else of it stays; strangers leave none."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from approvals.errors import ChangeRefused, PolicyInvalid
from approvals.models import AuditEvent, AutomaticRule, RuleChange
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.services import automatic, guarding, policymaking
from approvals.services.changes import confirm
from runs.clock import database_now
from runs.models import Agent, Membership, Team
from runs.services.agents import issue_key
from tests.approvals.scenes import opened, parked_run, policy
from tests.support.pages import browser

pytestmark = pytest.mark.django_db

Attempt = Callable[[Agent, User], object]
MONEY = PolicyDraft(name="Money", quorum=({"group": None, "count": 1},))
SMALL = RuleDraft(name="Small", tools=("refund",), window=3600, max_count=5, ends_at="2100-01-01T00:00:00Z")

ATTEMPTS: dict[str, tuple[str, Attempt]] = {
    "policy": ("propose a change", lambda a, by: policymaking.propose_policy(team=a.team, by=by, draft=MONEY)),
    "rule": ("propose a change", lambda a, by: policymaking.propose_automatic_rule(team=a.team, by=by, draft=SMALL)),
    "lift": ("propose a change", lambda a, by: policymaking.propose_lifting(team=a.team, by=by)),
    "reapply": (
        "apply a policy again",
        lambda a, by: policymaking.reapply_policy(policy=policy(a, "Money", (None, 1)), by=by),
    ),
    "reapply one": ("apply a policy again", lambda a, by: policymaking.reapply(approval_id=opened(a).pk, by=by)),
    "stop": ("stop the automatic rules", lambda a, by: automatic.stop(team=a.team, by=by)),
    "roles": (
        "propose a change",
        lambda a, by: guarding.propose_roles(team=a.team, by=by, person="amy", roles=["reviewer"]),
    ),
    "group": (
        "propose a change",
        lambda a, by: guarding.propose_members(team=a.team, by=by, group="finance", add=["amy"]),
    ),
    "agent": ("propose a change", lambda a, by: guarding.propose_agent(agent=a, by=by, owners=["amy"], team="Default")),
    "key": ("propose a change", lambda a, by: guarding.propose_key(agent=a, by=by, scopes=["runs:read"])),
    "webhook": (
        "propose a change",
        lambda a, by: guarding.propose_webhook(agent=a, by=by, url="https://agent.example/"),
    ),
    "reset": (
        "propose a change",
        lambda a, by: guarding.propose_reset(team=a.team, by=by, person=User.objects.get(username="amy")),
    ),
    "stop key": ("revoke a key", lambda a, by: guarding.stop_key(key=issue_key(agent=a).key, by=by)),
    "verify": ("verify a webhook", lambda a, by: guarding.challenge(agent=a, by=by)),
    "stop webhook": ("remove a webhook", lambda a, by: guarding.stop_webhook(agent=a, by=by)),
}


@pytest.fixture
def amy(person: Callable[..., User]) -> User:
    return person("amy", "admin")


@pytest.fixture
def stranger(db: None) -> User:
    user = User.objects.create_user("stranger")
    Membership.objects.create(user=user, team=Team.objects.create(name="Elsewhere"), roles=["admin"])
    return user


def refusals(chain: str) -> list[dict[str, Any]]:
    """Who was refused what, in the trail of that chain."""
    events = AuditEvent.objects.filter(chain=chain, type="attempt.refused").order_by("n").select_related("content")
    return [{"actor": event.actor, **json.loads(event.content.body)} for event in events]


@pytest.mark.parametrize("name", ATTEMPTS)
def test_who_has_no_right_is_refused_on_record(agent: Agent, team: Team, amy: User, person, name: str) -> None:
    rob = person("rob", "reviewer")
    words, attempt = ATTEMPTS[name]

    with pytest.raises(ChangeRefused):
        attempt(agent, rob)

    refused = [(each["actor"], each["attempt"], each["reason"]) for each in refusals(f"team:{team.pk}")]
    assert refused == [(f"person:{rob.pk}", words, "ChangeRefused")]
    assert not RuleChange.objects.exists()


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_stranger_leaves_no_trace(agent: Agent, team: Team, amy: User, stranger: User, name: str) -> None:
    """Or anybody with an account could fill the trail of a team that does not exist for them."""
    with pytest.raises(ChangeRefused):
        ATTEMPTS[name][1](agent, stranger)
    assert not refusals(f"team:{team.pk}")


@pytest.mark.django_db(transaction=True)
def test_the_record_is_committed_and_nothing_else(team: Team, amy: User, person: Callable[..., User]) -> None:
    olga = person("olga", "operator")
    with pytest.raises(ChangeRefused):
        policymaking.propose_lifting(team=team, by=olga)
    change = policymaking.propose_lifting(team=team, by=amy)
    with pytest.raises(ChangeRefused):
        confirm(change_id=change.pk, by=olga)

    assert refusals(f"team:{team.pk}") == [
        {
            "actor": f"person:{olga.pk}",
            "reason": "ChangeRefused",
            "message": "Only an administrator of the team can change its rules.",
            "kind": "lift_stop",
            **facts,
        }
        for facts in ({"attempt": "propose a change"}, {"attempt": "confirm a change", "change": change.pk})
    ]


def test_a_form_that_makes_no_sense_is_no_attempt(agent: Agent, team: Team, amy: User) -> None:
    with pytest.raises(PolicyInvalid):
        guarding.propose_roles(team=team, by=amy, person="nobody", roles=["reviewer"])
    with pytest.raises(PolicyInvalid):
        policymaking.propose_policy(team=team, by=amy, draft=PolicyDraft(name="", quorum=()))
    assert not refusals(f"team:{team.pk}")


DOORS = [
    "/people/teams/{team}/roles/propose/",
    "/people/teams/{team}/groups/propose/",
    "/people/teams/{team}/members/{person}/reset/",
    "/people/agents/{agent}/propose/",
    "/people/agents/{agent}/keys/propose/",
    "/people/keys/{key}/revoke/",
    "/rules/teams/{team}/policies/propose/",
    "/rules/teams/{team}/automatic/propose/",
    "/rules/teams/{team}/automatic/lift/",
    "/rules/policies/{policy}/switch/",
    "/rules/policies/{policy}/reapply/",
    "/rules/automatic/{rule}/end/",
]


@pytest.mark.parametrize("door", DOORS)
def test_pages_put_on_record_who_tries(agent: Agent, team: Team, amy: User, person, stranger: User, door: str) -> None:
    """An operator, who finds the rules and may not change them; whether the form is filled in does not matter."""
    olga, clients = person("olga", "operator"), {}
    rule = AutomaticRule.objects.create(
        team=team, name="Small", tools=["refund"], window=timedelta(days=1), max_count=1,
        ends_at=database_now() + timedelta(days=1), created_by=amy,
    )  # fmt: skip
    path = door.format(
        team=team.pk, person=amy.pk, agent=agent.pk, key=issue_key(agent=agent).key.pk,
        policy=policy(agent, "Money", (None, 1)).pk, rule=rule.pk,
    )  # fmt: skip
    for user in (stranger, olga):
        client = browser(user)
        clients[user.username] = client.post(path).status_code

    assert clients == {"stranger": 404, "olga": 403}
    assert [each["actor"] for each in refusals(f"team:{team.pk}")] == [f"person:{olga.pk}"]


def test_wanting_the_trail_is_put_on_record(team: Team, person: Callable[..., User], stranger: User) -> None:
    olga = person("olga", "operator")
    for user in (stranger, olga):
        client = browser(user)
        assert client.post("/audit/export/", {"format": "jsonl"}).status_code == 403
    assert [(each["actor"], each["attempt"]) for each in refusals(f"team:{team.pk}")] == [
        (f"person:{olga.pk}", "export the trail")
    ]


def test_looking_at_a_form_is_no_attempt(team: Team, amy: User, person: Callable[..., User]) -> None:
    client = browser(person("olga", "operator"))
    assert client.get(f"/rules/teams/{team.pk}/policies/propose/").status_code == 403
    assert not refusals(f"team:{team.pk}")


@pytest.mark.parametrize("act", ["cancel", "retry", "fork"])
def test_a_run_remembers_who_tried_to_operate_it(agent: Agent, reviewer: User, act: str) -> None:
    run, client = parked_run(agent), Client()
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    assert client.post(f"/runs/{run.pk}/{act}/", {"checkpoint": 0}).status_code == 403
    assert [(each["actor"], each["attempt"]) for each in refusals(f"run:{run.pk}")] == [
        (f"person:{reviewer.pk}", f"POST {act}")
    ]
