"""A delegation is confirmed like any change that takes two: by the same people, and with every refusal on record."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from approvals.errors import DelegationRefused
from approvals.models import AuditEvent, Delegation
from approvals.services.delegating import confirm_delegation, delegate, revoke_delegation
from approvals.states import ApprovalStatus
from runs.clock import database_now
from runs.models import Agent, Membership, Team
from runs.services.passwords import change_password
from tests.approvals.scenes import cast, in_group, member, opened, policy
from tests.support.pages import browser, text

pytestmark = pytest.mark.django_db

MakePerson = Callable[..., User]


@pytest.fixture
def ada(person: MakePerson) -> User:
    return person("ada")


@pytest.fixture
def bob(person: MakePerson) -> User:
    return person("bob", "operator")


@pytest.fixture
def amy(person: MakePerson) -> User:
    return person("amy", "admin")


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def other(db: None) -> Team:
    return Team.objects.create(name="Elsewhere")


def lend(giver: User, taker: User, by: User | None = None, *, days: int = 7) -> Delegation:
    now = database_now()
    return delegate(giver=giver, taker=taker, starts_at=now, ends_at=now + timedelta(days=days), by=by or giver)


def refusals(team: Team) -> list[tuple[str, str]]:
    events = AuditEvent.objects.filter(chain=f"team:{team.pk}", type="attempt.refused").order_by("n")
    bodies = [(event.actor, json.loads(event.content.body)) for event in events.select_related("content")]
    return [(actor, body["attempt"]) for actor, body in bodies]


def test_a_superuser_confirms_it(agent: Agent, ada: User, bob: User, root: User) -> None:
    confirm_delegation(delegation_id=lend(ada, bob).pk, by=root)
    assert cast(opened(agent, risk="high"), bob).status == ApprovalStatus.APPROVED


def test_a_superuser_who_is_one_of_the_two_does_not(team: Team, ada: User, root: User) -> None:
    Membership.objects.create(user=root, team=team, roles=["operator"])
    given = lend(ada, root)
    with pytest.raises(DelegationRefused):
        confirm_delegation(delegation_id=given.pk, by=root)


def test_it_takes_administrators_of_every_team_in_which_the_giver_decides(team, other, ada, bob, amy, root) -> None:
    """Or the administrator of one team would let somebody vote about the high risk of another."""
    Membership.objects.create(user=ada, team=other, roles=["reviewer"])
    given = lend(ada, bob)
    with pytest.raises(DelegationRefused, match="It touches Elsewhere too"):
        confirm_delegation(delegation_id=given.pk, by=amy)
    assert refusals(team) == refusals(other) == [(f"person:{amy.pk}", "confirm a delegation")]
    Membership.objects.create(user=amy, team=other, roles=["admin"])
    assert confirm_delegation(delegation_id=given.pk, by=amy).confirmed_by == amy


def test_a_team_in_which_the_giver_decides_nothing_has_no_say(other: Team, ada: User, bob: User, amy: User) -> None:
    Membership.objects.create(user=ada, team=other, roles=["auditor"])
    assert confirm_delegation(delegation_id=lend(ada, bob).pk, by=amy).confirmed_by == amy


def test_who_decides_elsewhere_by_a_group_is_seen_from_there(other: Team, ada: User, bob: User, amy: User) -> None:
    policy(Agent.objects.create(team=other, name="theirs"), "Money", ("finance", 1))
    given, olga = lend(in_group(ada, "finance"), bob), member("olga", other, "admin")
    with pytest.raises(DelegationRefused, match="It touches Elsewhere too"):
        confirm_delegation(delegation_id=given.pk, by=amy)
    assert "ada" in browser(olga).get("/delegations/").content.decode()
    with pytest.raises(DelegationRefused, match="It touches Default too"):
        confirm_delegation(delegation_id=given.pk, by=olga)


def test_every_refusal_is_on_record(team: Team, ada: User, bob: User, amy: User, person: MakePerson) -> None:
    cem, given = person("cem", "auditor"), lend(ada, bob)
    attempts: list[tuple[User, Callable[[], object], str]] = [
        (bob, lambda: lend(ada, bob, by=bob), "arrange a delegation"),
        (bob, lambda: lend(bob, ada), "arrange a delegation"),
        (cem, lambda: confirm_delegation(delegation_id=given.pk, by=cem), "confirm a delegation"),
        (ada, lambda: confirm_delegation(delegation_id=given.pk, by=ada), "confirm a delegation"),
        (cem, lambda: revoke_delegation(delegation_id=given.pk, by=cem), "end a delegation"),
    ]
    for _, attempt, _ in attempts:
        with pytest.raises(DelegationRefused):
            attempt()
    assert refusals(team) == [(f"person:{who.pk}", words) for who, _, words in attempts]


def test_what_makes_no_sense_is_no_attempt_and_a_stranger_leaves_no_trace(team, other, ada: User, bob: User) -> None:
    given, omar = lend(ada, bob), member("omar", other, "admin")
    for attempt in (
        lambda: lend(ada, ada),
        lambda: lend(ada, bob, days=91),
        lambda: lend(ada, bob, by=omar),
        lambda: confirm_delegation(delegation_id=given.pk, by=omar),
        lambda: revoke_delegation(delegation_id=given.pk, by=omar),
    ):
        with pytest.raises(DelegationRefused):
            attempt()
    assert not refusals(team)


@pytest.mark.django_db(transaction=True)
def test_who_is_too_new_does_not_confirm_it(ada: User, bob: User, amy: User, settings, move_clock) -> None:
    settings.FERMATA_PROBATION_HOURS = 24
    move_clock(timedelta(hours=25))
    change_password(person=amy, password="a stapler under the willow")
    given = lend(ada, bob)
    with pytest.raises(DelegationRefused, match="Your password was set less than 24 h ago"):
        confirm_delegation(delegation_id=given.pk, by=amy)
    page = browser(amy).get("/delegations/").content.decode()
    assert "Your password was set less than 24 h ago. For high risk you can decide from" in page
    assert "Confirm for high risk" not in page

    move_clock(timedelta(hours=25))
    assert "Confirm for high risk" in browser(amy).get("/delegations/").content.decode()
    confirm_delegation(delegation_id=given.pk, by=amy)


def test_a_superuser_finds_what_nobody_has_confirmed(ada: User, bob: User, amy: User, root: User) -> None:
    given, client = lend(ada, bob), browser(root)
    assert "Confirm for high risk" in client.get("/delegations/").content.decode()
    confirm_delegation(delegation_id=given.pk, by=amy)
    assert "bob" not in text(client, "/delegations/")
    assert client.post(f"/delegations/{given.pk}/end/").status_code == 404

    second = lend(ada, bob)
    assert client.post(f"/delegations/{second.pk}/end/").status_code == 302
    second.refresh_from_db()
    assert second.revoked_at is not None
