"""Teams, groups, agents, keys and reset links: where high risk depends on one, changing it takes two."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User

from approvals.errors import ChangeDecided, ChangeRefused, ChangeStale, NotEligible, PolicyInvalid
from approvals.models import AuditEvent, ChangeKind, ChangeOutcome, RuleChange
from approvals.policies.guarded import AgentDraft, GroupDraft, MembershipDraft
from approvals.services import changes
from approvals.services.changes import confirm, confirm_alone, propose, withdraw
from approvals.services.guarding import (
    propose_agent,
    propose_key,
    propose_members,
    propose_reset,
    propose_roles,
    stop_key,
)
from approvals.states import ApprovalStatus
from runs.clock import database_now
from runs.models import Agent, AgentKey, Membership, ResetLink, Team
from runs.services.agents import create_agent, issue_key
from runs.services.passwords import LinkRefused, change_password, digest_of, use_link
from tests.approvals.scenes import cast, in_group, member, opened, policy
from tests.support.api import Caller

pytestmark = pytest.mark.django_db

NEW = "a stapler under the willow"
Admins = tuple[User, User]


@pytest.fixture
def admins(person: Callable[..., User]) -> Admins:
    return person("amy", "admin"), person("ann", "admin")


@pytest.fixture
def other(db: None) -> Team:
    return Team.objects.create(name="Elsewhere")


def roles_of(user: User, team: Team) -> list[str]:
    return sorted(Membership.objects.filter(user=user, team=team).values_list("roles", flat=True).first() or ())


def told(team: Team, *types: str) -> list[str]:
    """The bodies of the team's events of these types, oldest first."""
    events = AuditEvent.objects.filter(chain=f"team:{team.pk}", type__in=types).order_by("n")
    return [event.content.body for event in events.select_related("content")]


# --- groups ------------------------------------------------------------------------------------------------------


def test_joining_a_group_that_decides_takes_two(agent: Agent, team: Team, admins: Admins, person) -> None:
    amy, ann = admins
    policy(agent, "Money", ("finance", 1))
    fay, eve = person("fay", "operator"), in_group(person("eve", "operator"), "finance")
    change = propose_members(team=team, by=amy, group="finance", add=["fay"], remove=["eve"])
    assert (change.outcome, change.teams) == ("", [team.pk])
    assert [user.username for user in User.objects.filter(groups__name="finance")] == ["eve"]
    with pytest.raises(NotEligible):
        cast(opened(agent), fay)

    confirm(change_id=change.pk, by=ann)

    assert [user.username for user in User.objects.filter(groups__name="finance")] == ["fay"]
    assert cast(opened(agent), fay).status == ApprovalStatus.PENDING
    with pytest.raises(NotEligible):
        cast(opened(agent), eve)
    proposed, confirmed, applied = told(team, "person.changed")
    assert '"what":"proposed"' in proposed
    assert '"what":"confirmed"' in confirmed
    assert f'"added":[{fay.pk}],"group":"finance","removed":[{eve.pk}]' in applied


@pytest.mark.parametrize("named", ["escalation", "open", "inactive", "older"])
def test_which_groups_decide(agent: Agent, team: Team, admins: Admins, person, named: str) -> None:
    """Named in an escalation, or waited for; not one of a policy that is off, or only of an older version."""
    amy, _ = admins
    person("fay", "operator")
    Group.objects.create(name="finance")
    if named == "escalation":
        stages = '[{"group":"finance","seconds":5}]'
        policy(agent, "Late", (None, 1), escalation=stages, deadline=timedelta(hours=1))
    else:
        money = policy(agent, "Money", ("finance", 1))
        if named == "open":
            opened(agent)
        if named == "older":
            money.versions.create(number=2, quorum='[{"count":1,"group":null}]')
        else:
            money.is_active = False
            money.save()

    change = propose_members(team=team, by=amy, group="finance", add=["fay"])

    assert bool(change.outcome) == (named in ("inactive", "older"))


def test_what_decides_nothing_is_done_at_once_and_on_record(team: Team, admins: Admins, person) -> None:
    amy, _ = admins
    fay = person("fay", "operator")
    change = propose_members(team=team, by=amy, group="newsletter", add=["fay"])

    assert change.outcome == ChangeOutcome.APPLIED
    assert fay.groups.get().name == "newsletter"
    assert ['"what":"applied"' in told(team, "person.changed")[0], len(told(team, "person.changed"))] == [True, 2]
    with pytest.raises(ChangeDecided):
        confirm(change_id=change.pk, by=amy)


def test_a_group_of_two_teams_takes_an_administrator_of_each(agent, team, other, admins: Admins, person) -> None:
    amy, ann = admins
    person("fay", "operator")
    olga = member("olga", other, "admin")
    for each in (agent, Agent.objects.create(team=other, name="theirs")):
        policy(each, "Money", ("finance", 1))
    Group.objects.create(name="finance")
    change = propose_members(team=team, by=amy, group="finance", add=["fay"])
    assert change.teams == sorted([team.pk, other.pk])
    with pytest.raises(ChangeRefused, match="It touches Elsewhere too"):
        confirm(change_id=change.pk, by=ann)
    with pytest.raises(ChangeRefused, match="Another administrator"):
        confirm_alone(change_id=change.pk, by=amy, reason="in a hurry")

    confirm(change_id=change.pk, by=olga)

    assert Group.objects.get().user_set.get().username == "fay"
    for each in (team, other):
        assert len(told(each, "person.changed")) == 3


# --- memberships -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "takes_two"),
    [
        (["operator"], ["operator", "reviewer"], True),
        (["reviewer"], [], True),
        (["auditor"], ["admin"], True),
        ([], ["reviewer"], True),
        ([], ["auditor"], False),
        (["reviewer"], ["operator", "reviewer"], False),
        (["operator"], [], False),
    ],
)
def test_roles_that_vote_or_confirm_take_two(team, admins: Admins, other, before, after, takes_two) -> None:
    amy, ann = admins
    bob = member("bob", team, *before) if before else member("bob", other, "operator")

    change = propose_roles(team=team, by=amy, person="bob", roles=after)

    assert (change.outcome == "") == takes_two
    assert roles_of(bob, team) == (before if takes_two else after)
    if takes_two:
        confirm(change_id=change.pk, by=ann)
        assert roles_of(bob, team) == after


def test_becoming_a_reviewer_begins_anew(agent, team, admins: Admins, settings, person) -> None:
    """A membership of a year, as operator, is no day as a reviewer."""
    settings.FERMATA_PROBATION_HOURS = 24
    amy, ann = admins
    bob = person("bob", "operator")
    long_ago = database_now() - timedelta(days=365)
    Membership.objects.update(since=long_ago)
    User.objects.update(date_joined=long_ago)

    confirm(change_id=propose_roles(team=team, by=amy, person="bob", roles=["reviewer", "operator"]).pk, by=ann)

    with pytest.raises(NotEligible, match="You joined less than 24 h ago"):
        cast(opened(agent, risk="high"), bob)


def test_nobody_confirms_what_they_proposed_or_what_is_about_them(team, admins: Admins, person) -> None:
    amy, ann = admins
    change = propose_roles(team=team, by=amy, person="ann", roles=["admin", "reviewer"])
    with pytest.raises(ChangeRefused, match="It was you who proposed it"):
        confirm(change_id=change.pk, by=amy)
    with pytest.raises(ChangeRefused, match="It is about you"):
        confirm(change_id=change.pk, by=ann)
    with pytest.raises(ChangeRefused, match="Another administrator"):
        confirm_alone(change_id=change.pk, by=amy, reason="she cannot do it herself")

    refusals = told(team, "attempt.refused")
    assert len(refusals) == 3
    assert '"attempt":"confirm a change"' in refusals[0]
    assert "It was you who proposed it" in refusals[0]
    assert roles_of(ann, team) == ["admin"]
    confirm(change_id=change.pk, by=person("abe", "admin"))
    assert roles_of(ann, team) == ["admin", "reviewer"]


def test_nobody_fills_the_pages_with_proposals(agent, team, admins: Admins, person, monkeypatch) -> None:
    amy, ann = admins
    person("fay", "operator")
    monkeypatch.setattr(changes, "MOST_OPEN", 2)
    waiting = [propose_key(agent=agent, by=amy, scopes=["runs:read"]).change for _ in range(2)]
    with pytest.raises(ChangeRefused, match="take one back"):
        propose_key(agent=agent, by=amy, scopes=["runs:read"])
    propose_members(team=team, by=amy, group="lunch", add=["fay"])  # guards nothing: it waits for nobody
    propose_key(agent=agent, by=ann, scopes=["runs:read"])
    withdraw(change_id=waiting[0].pk, by=amy)
    propose_key(agent=agent, by=amy, scopes=["runs:read"])


def test_a_proposal_whose_base_changed_is_refused(team, admins: Admins, person) -> None:
    amy, ann = admins
    bob = person("bob", "operator")
    first = propose_roles(team=team, by=amy, person="bob", roles=["operator", "reviewer"])
    second = propose_roles(team=team, by=amy, person="bob", roles=["admin"])
    confirm(change_id=first.pk, by=ann)

    with pytest.raises(ChangeStale):
        confirm(change_id=second.pk, by=ann)

    assert roles_of(bob, team) == ["operator", "reviewer"]
    assert "ChangeStale" in told(team, "attempt.refused")[0]
    withdraw(change_id=second.pk, by=amy)


def test_a_group_that_decides_elsewhere_by_now_is_another_proposal(agent, team, other, admins: Admins, person) -> None:
    amy, ann = admins
    person("fay", "operator")
    policy(agent, "Money", ("finance", 1))
    Group.objects.create(name="finance")
    change = propose_members(team=team, by=amy, group="finance", add=["fay"])
    policy(Agent.objects.create(team=other, name="theirs"), "Money", ("finance", 1))

    with pytest.raises(ChangeStale):
        confirm(change_id=change.pk, by=ann)


@pytest.mark.parametrize("kind", ["membership", "group", "agent"])
def test_a_proposal_that_was_written_before_another_change_is_no_way_around(agent, team, admins, person, kind) -> None:
    """Whoever keeps the role of reviewer needs nobody else; not so whoever lost it since the form was read."""
    bob = in_group(person("bob", "operator"), "newsletter")
    drafts = {
        "membership": MembershipDraft(person=bob.pk, roles=("reviewer",), was=("reviewer", "operator")),
        "group": GroupDraft(group="newsletter", add=(bob.pk,)),
        "agent": AgentDraft(agent=str(agent.pk), owners=(), owners_were=(bob.pk,), team=team.pk, team_was=team.pk),
    }
    with pytest.raises(ChangeStale):
        propose(team=team, by=admins[0], kind=ChangeKind(kind), body=drafts[kind].to_text())
    assert roles_of(bob, team) == ["operator"]
    assert not RuleChange.objects.exists()


def test_refusing_and_withdrawing_are_told_apart(team, admins: Admins, person) -> None:
    amy, ann = admins
    person("bob", "operator")
    for by in (ann, amy):
        change = propose_roles(team=team, by=amy, person="bob", roles=["reviewer"])
        withdraw(change_id=change.pk, by=by)

    assert ['"what":"refused"' in body for body in told(team, "person.changed")] == [False, True, False, False]
    with pytest.raises(ChangeDecided):
        confirm(change_id=change.pk, by=ann)


def test_only_administrators_take_part(agent, team, admins: Admins, person, other) -> None:
    amy, _ = admins
    policy(agent, "Money", ("finance", 1))
    person("fay", "operator")
    Group.objects.create(name="finance")
    change = propose_members(team=team, by=amy, group="finance", add=["fay"])
    for outsider in (person("rob"), person("olga", "operator"), member("omar", other, "admin")):
        for attempt in (
            lambda by: propose_members(team=team, by=by, group="finance", add=["fay"]),
            lambda by: propose_roles(team=team, by=by, person="fay", roles=["reviewer"]),
            lambda by: propose_agent(agent=agent, by=by, owners=[], team=team.name),
            lambda by: propose_key(agent=agent, by=by, scopes=["runs:read"]),
            lambda by: propose_reset(team=team, by=by, person=amy),
            lambda by: confirm(change_id=change.pk, by=by),
            lambda by: withdraw(change_id=change.pk, by=by),
        ):
            with pytest.raises(ChangeRefused):
                attempt(outsider)
    assert RuleChange.objects.count() == 1


@pytest.mark.parametrize(
    ("propose", "field"),
    [
        (lambda team, by, agent: propose_roles(team=team, by=by, person="nobody", roles=["reviewer"]), "person"),
        (lambda team, by, agent: propose_roles(team=team, by=by, person="amy", roles=["king"]), "roles"),
        (lambda team, by, agent: propose_roles(team=team, by=by, person="amy", roles=["admin"]), "roles"),
        (lambda team, by, agent: propose_members(team=team, by=by, group="", add=["amy"]), "group"),
        (lambda team, by, agent: propose_members(team=team, by=by, group="x", add=["nobody"]), "add"),
        (lambda team, by, agent: propose_members(team=team, by=by, group="x", remove=["amy"]), "remove"),
        (lambda team, by, agent: propose_agent(agent=agent, by=by, owners=[], team="Nowhere"), "team"),
        (lambda team, by, agent: propose_agent(agent=agent, by=by, owners=[], team="Default"), "owners"),
        (lambda team, by, agent: propose_key(agent=agent, by=by, scopes=["everything"]), "scopes"),
        (lambda team, by, agent: propose_key(agent=agent, by=by, scopes=[]), "scopes"),
    ],
)
def test_what_makes_no_sense_names_its_field(agent, team, admins: Admins, propose, field: str) -> None:
    with pytest.raises(PolicyInvalid) as wrong:
        propose(team, admins[0], agent)
    assert [where for where, _ in wrong.value.errors] == [field]


# --- agents ------------------------------------------------------------------------------------------------------


def test_an_owner_who_is_to_vote_again_takes_two(agent, team, admins: Admins, reviewer) -> None:
    """Whoever owns an agent may not vote on what it asks: not to own it any more gives a vote."""
    amy, ann = admins
    agent.owners.add(reviewer)
    change = propose_agent(agent=agent, by=amy, owners=["amy"], team=team.name)
    with pytest.raises(NotEligible):
        cast(opened(agent), reviewer)

    confirm(change_id=change.pk, by=ann)

    assert list(agent.owners.all()) == [amy]
    assert cast(opened(agent), reviewer).status == ApprovalStatus.APPROVED
    assert [body.count('"what"') for body in told(team, "agent.changed")] == [1, 1, 0]


def test_an_agent_moves_with_an_administrator_of_either_team(agent, team, other, admins: Admins) -> None:
    amy, ann = admins
    olga = member("olga", other, "admin")
    change = propose_agent(agent=agent, by=amy, owners=[], team="Elsewhere")
    with pytest.raises(ChangeRefused, match="It touches Elsewhere"):
        confirm(change_id=change.pk, by=ann)
    Agent.objects.create(team=other, name=agent.name)
    with pytest.raises(ChangeRefused, match="has an agent of that name"):
        confirm(change_id=change.pk, by=olga)
    other.agents.all().delete()

    confirm(change_id=change.pk, by=olga)

    agent.refresh_from_db()
    assert agent.team == other


def test_a_key_works_once_another_administrator_has_confirmed_it(agent, team, admins: Admins) -> None:
    amy, ann = admins
    drawn = propose_key(agent=agent, by=amy, scopes=["approvals:read", "runs:read"])
    assert Caller(f"Bearer {drawn.text}").get("/approvals").status_code == 401
    assert drawn.text not in drawn.change.body

    confirm(change_id=drawn.change.pk, by=ann)

    assert Caller(f"Bearer {drawn.text}").get("/approvals").status_code == 200
    key = AgentKey.objects.get()
    assert (key.scopes, key.created_by) == (["approvals:read", "runs:read"], amy)
    assert len(told(team, "key.created")) == 1
    assert not any(drawn.text in body for body in told(team, "key.created", "agent.changed"))


def test_a_key_of_an_agent_that_moved_meanwhile_is_stale(agent, other, admins: Admins) -> None:
    amy, ann = admins
    drawn = propose_key(agent=agent, by=amy, scopes=["runs:read"])
    Agent.objects.update(team=other)
    with pytest.raises(ChangeStale):
        confirm(change_id=drawn.change.pk, by=ann)
    assert not AgentKey.objects.exists()


def test_a_key_is_stopped_at_once(team, admins: Admins, person) -> None:
    _, issued = create_agent(name="shop", team=team)
    key = issue_key(agent=issued.key.agent).key
    with pytest.raises(ChangeRefused):
        stop_key(key=key, by=person("olga", "operator"))
    stop_key(key=key, by=admins[0])
    assert Caller(f"Bearer {issued.text}").get("/approvals").status_code == 200
    assert len(told(team, "key.revoked")) == 1


# --- reset links -------------------------------------------------------------------------------------------------


def test_a_reset_link_of_somebody_who_votes_works_once_confirmed(team, admins: Admins, reviewer) -> None:
    amy, ann = admins
    drawn = propose_reset(team=team, by=amy, person=reviewer)
    assert drawn.text not in drawn.change.body
    with pytest.raises(LinkRefused):
        use_link(digest=digest_of(drawn.text), password=NEW)

    confirm(change_id=drawn.change.pk, by=ann)

    use_link(digest=digest_of(drawn.text), password=NEW)
    reviewer.refresh_from_db()
    assert reviewer.check_password(NEW)


@pytest.mark.parametrize(
    ("roles", "group", "takes_two"),
    [(["operator"], "", False), (["operator"], "finance", True), (["admin"], "", True), (["reviewer"], "", True)],
)
def test_whose_reset_links_take_two(agent, team, admins: Admins, person, roles, group, takes_two) -> None:
    policy(agent, "Money", ("finance", 1))
    bob = in_group(person("bob", *roles), *[group] if group else [])

    drawn = propose_reset(team=team, by=admins[0], person=bob)

    assert (drawn.change.outcome == "") == takes_two
    assert ResetLink.objects.filter(person=bob).exists() != takes_two


def test_who_has_set_a_password_meanwhile_needs_no_link(team, admins: Admins, reviewer) -> None:
    amy, ann = admins
    drawn = propose_reset(team=team, by=amy, person=reviewer)
    change_password(person=reviewer, password=NEW)
    with pytest.raises(ChangeStale):
        confirm(change_id=drawn.change.pk, by=ann)


def test_a_reset_touches_every_team_in_which_the_person_votes(team, other, admins: Admins, reviewer) -> None:
    amy, ann = admins
    Membership.objects.create(user=reviewer, team=other, roles=["reviewer"])
    drawn = propose_reset(team=team, by=amy, person=reviewer)
    with pytest.raises(ChangeRefused, match="It touches Elsewhere"):
        confirm(change_id=drawn.change.pk, by=ann)
    with pytest.raises(PolicyInvalid):
        propose_reset(team=team, by=amy, person=member("olga", other, "operator"))


# --- alone -------------------------------------------------------------------------------------------------------


def test_the_only_administrator_does_it_alone_and_says_why(team, person) -> None:
    amy = person("amy", "admin")
    change = propose_roles(team=team, by=amy, person="amy", roles=["admin", "reviewer"])
    with pytest.raises(ChangeRefused, match="Say why"):
        confirm_alone(change_id=change.pk, by=amy, reason=" ")

    confirm_alone(change_id=change.pk, by=amy, reason="nobody else is here")

    assert roles_of(amy, team) == ["admin", "reviewer"]
    assert any(
        '"what":"confirmed alone"' in body and "nobody else is here" in body for body in told(team, "person.changed")
    )
