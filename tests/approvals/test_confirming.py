"""Who may be the second one: other administrators, and superusers, who see proposals and nothing else by being one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from approvals.errors import ChangeRefused
from approvals.models import AuditEvent, RuleChange
from approvals.services.changes import confirm, confirm_alone, withdraw
from approvals.services.guarding import propose_agent, propose_reset, propose_roles
from approvals.services.policymaking import propose_lifting
from runs.models import Agent, Membership, Team
from runs.services.people import set_active
from tests.approvals.scenes import opened, policy
from tests.support.api import as_person
from tests.support.pages import browser

pytestmark = pytest.mark.django_db

MakePerson = Callable[..., User]


@pytest.fixture
def amy(person: MakePerson) -> User:
    return person("amy", "admin")


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root", password="correct horse battery")


@pytest.fixture
def other(db: None) -> Team:
    return Team.objects.create(name="Elsewhere")


def member(user: User, team: Team, *roles: str) -> User:
    Membership.objects.create(user=user, team=team, roles=list(roles))
    return user


def told(team: Team, type: str) -> list[tuple[str, str]]:
    """Who did what, by the team's events of that type, oldest first."""
    events = AuditEvent.objects.filter(chain=f"team:{team.pk}", type=type).order_by("n")
    return [(event.actor, event.content.body) for event in events.select_related("content")]


# --- superusers --------------------------------------------------------------------------------------------------


def test_a_superuser_confirms_what_nobody_administers_together(agent: Agent, team: Team, other: Team, amy, root):
    policy(agent, "Money", (None, 1))
    change = propose_agent(agent=agent, by=amy, owners=[], team="Elsewhere")
    assert change.teams == sorted([team.pk, other.pk])

    confirm(change_id=change.pk, by=root)

    agent.refresh_from_db()
    assert agent.team == other
    for each in (team, other):
        assert any(
            actor == f"person:{root.pk}" and '"confirmed"' in body for actor, body in told(each, "agent.changed")
        )


def test_a_superuser_turns_it_down(team: Team, amy: User, root: User) -> None:
    change = propose_lifting(team=team, by=amy)
    withdraw(change_id=change.pk, by=root)
    assert told(team, "policy.changed")[-1][0] == f"person:{root.pk}"
    assert '"what":"refused"' in told(team, "policy.changed")[-1][1]


def test_a_superuser_proposes_nothing_and_does_not_confirm_alone(team: Team, amy: User, root: User) -> None:
    with pytest.raises(ChangeRefused):
        propose_lifting(team=team, by=root)
    change = propose_lifting(team=team, by=amy)
    with pytest.raises(ChangeRefused):
        confirm_alone(change_id=change.pk, by=root, reason="in a hurry")


def test_a_closed_superuser_counts_for_nothing(team: Team, amy: User, root: User) -> None:
    change = propose_lifting(team=team, by=amy)
    with pytest.raises(ChangeRefused, match="Another administrator"):
        confirm_alone(change_id=change.pk, by=amy, reason="nobody else is here")
    set_active(person=root, active=False)
    with pytest.raises(ChangeRefused):
        confirm(change_id=change.pk, by=root)
    confirm_alone(change_id=change.pk, by=amy, reason="nobody else is here")


def test_a_superuser_does_not_confirm_what_they_proposed(team: Team, amy: User, root: User) -> None:
    """Nor do they count as an administrator any more, once they are none."""
    member(root, team, "admin")
    change = propose_lifting(team=team, by=root)
    with pytest.raises(ChangeRefused, match="It was you"):
        confirm(change_id=change.pk, by=root)
    Membership.objects.filter(user=root).delete()
    for attempt in (confirm, withdraw):
        with pytest.raises(ChangeRefused, match="Only an administrator"):
            attempt(change_id=change.pk, by=root)
    assert told(team, "attempt.refused")[-1][0] == f"person:{root.pk}"
    confirm(change_id=change.pk, by=amy)


def test_nobody_takes_the_only_superuser_over_alone(team: Team, amy: User, root: User) -> None:
    """With root's password the only administrator would be the second one, too."""
    member(root, team, "operator")
    change = propose_reset(team=team, by=amy, person=root).change
    with pytest.raises(ChangeRefused, match="Another administrator"):
        confirm_alone(change_id=change.pk, by=amy, reason="root forgot it")
    for attempt in (confirm, withdraw):
        with pytest.raises(ChangeRefused):
            attempt(change_id=change.pk, by=root)

    confirm(change_id=change.pk, by=User.objects.create_superuser("second"))


def test_two_administrators_do_not_take_a_superuser_over(
    team: Team, amy: User, root: User, person: Callable[..., User]
) -> None:
    """With root's password the two would be the second one of every team."""
    member(root, team, "auditor")
    change = propose_reset(team=team, by=amy, person=root).change
    with pytest.raises(ChangeRefused, match="another superuser"):
        confirm(change_id=change.pk, by=person("ann", "admin"))
    confirm(change_id=change.pk, by=User.objects.create_superuser("second"))


def test_the_only_administrator_of_two_teams_who_is_the_superuser_acts_alone(team: Team, other: Team, agent: Agent):
    """As the first account of an installation is, by docs/operating.md."""
    first = member(User.objects.create_superuser("first"), team, "admin", "operator")
    change = propose_agent(agent=agent, by=first, owners=[], team="Elsewhere")
    confirm_alone(change_id=change.pk, by=first, reason="nobody else is here")
    assert other.agents.get() == agent


# --- pages -------------------------------------------------------------------------------------------------------


def test_a_superuser_finds_proposals_and_nothing_else(agent: Agent, team: Team, other: Team, amy, root, person):
    policy(agent, "Money", ("finance", 1))
    approval = opened(agent)
    olga = member(person("olga", "operator"), other, "admin")
    propose_roles(team=team, by=amy, person="olga", roles=["reviewer"])
    propose_lifting(team=other, by=olga)
    client = browser(root)
    assert '<a href="/rules/"' in client.get("/").content.decode()

    page = client.get("/rules/").content.decode()

    for said in ("Roles: <span", "olga", "Let the automatic rules go on", "Elsewhere", "Default"):
        assert said in page
    assert page.count(">Confirm</button>") == 2
    for hidden in ("Money", "finance", str(approval.pk), str(approval.run_id), "Propose a policy"):
        assert hidden not in page
    assert str(approval.pk) not in client.get("/").content.decode()
    assert client.get(f"/approvals/{approval.pk}/").status_code == 404
    assert as_person(root).get("/approvals").json()["results"] == []

    for change in RuleChange.objects.all():
        assert client.get(f"/rules/changes/{change.pk}/").status_code == 200
        assert client.post(f"/rules/changes/{change.pk}/confirm/").status_code == 302
    assert "No proposal waits for a second person." in client.get("/rules/").content.decode()


def test_who_has_a_team_finds_its_proposals_there(team: Team, other: Team, amy: User, root: User, person) -> None:
    member(root, team, "auditor")
    propose_lifting(team=team, by=amy)
    propose_lifting(team=other, by=member(person("olga", "operator"), other, "admin"))
    page = browser(root).get("/rules/").content.decode()
    assert page.count(">Confirm</button>") == 2
    assert page.count("you may confirm them as a superuser") == 1


def test_others_find_only_what_touches_their_teams(team: Team, other: Team, amy: User, person: MakePerson) -> None:
    stranger = member(User.objects.create_user("stranger"), other, "admin")
    change = propose_lifting(team=team, by=amy)
    assert browser(stranger).get(f"/rules/changes/{change.pk}/").status_code == 404
    assert "Let the automatic rules go on" not in browser(stranger).get("/rules/").content.decode()
