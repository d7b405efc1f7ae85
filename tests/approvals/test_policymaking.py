"""Changing the rules takes two; what is open follows where the change is stricter."""

from dataclasses import replace

import pytest

from approvals.errors import ChangeRefused, PolicyInvalid
from approvals.models import AuditEvent, AutomaticRule, Policy, RuleChange
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.services.automatic import stop
from approvals.services.changes import confirm, confirm_alone, withdraw
from approvals.services.policymaking import (
    propose_automatic_rule,
    propose_lifting,
    propose_policy,
    reapply,
    tighten_open,
)
from approvals.states import ApprovalStatus
from tests.approvals.scenes import cast, events, in_group, opened

pytestmark = pytest.mark.django_db

MONEY = PolicyDraft(name="Money", quorum=({"group": "finance", "count": 1},), tools=("refund",), deadline=3600)
SMALL = RuleDraft(
    name="Small",
    tools=("refund",),
    window=3600,
    max_count=5,
    ends_at="2030-01-01T00:00:00Z",
    sum_of="/amount",
    max_sum="9.5",
)


@pytest.fixture
def admins(person):
    in_group(person("fay"), "finance")
    return person("amy", "admin"), person("ann", "admin")


def test_one_proposes_and_another_confirms(agent, team, admins):
    amy, ann = admins
    change = propose_policy(team=team, by=amy, draft=MONEY)
    assert "group:finance" not in opened(agent).pools
    with pytest.raises(ChangeRefused, match="It was you"):
        confirm(change_id=change.pk, by=amy)

    confirm(change_id=change.pk, by=ann)

    assert "group:finance" in opened(agent).pools
    assert Policy.objects.get(name="Money").versions.get().created_by == amy
    assert AuditEvent.objects.filter(type="policy.changed", chain=f"team:{team.pk}").count() == 2
    with pytest.raises(ChangeRefused, match="already"):
        confirm(change_id=change.pk, by=ann)


def test_versions_are_added_and_never_changed(team, admins):
    amy, ann = admins
    for draft in (MONEY, replace(MONEY, rejections=2), replace(MONEY, is_active=False)):
        confirm(change_id=propose_policy(team=team, by=amy, draft=draft).pk, by=ann)

    made = Policy.objects.get(name="Money")
    assert [(version.number, version.rejections) for version in made.versions.all()] == [(3, 1), (2, 2), (1, 1)]
    assert not made.is_active


def test_only_administrators_take_part(team, admins, person):
    amy, _ = admins
    change = propose_policy(team=team, by=amy, draft=MONEY)

    for outsider in (person("rob"), person("olga", "operator")):
        with pytest.raises(ChangeRefused):
            propose_policy(team=team, by=outsider, draft=MONEY)
        with pytest.raises(ChangeRefused):
            confirm(change_id=change.pk, by=outsider)
        with pytest.raises(ChangeRefused):
            withdraw(change_id=change.pk, by=outsider)


def test_the_only_administrator_does_it_alone_for_all_to_see(team, person):
    in_group(person("fay"), "finance")
    amy = person("amy", "admin")
    change = propose_policy(team=team, by=amy, draft=MONEY)
    with pytest.raises(ChangeRefused):
        confirm_alone(change_id=change.pk, by=amy, reason=" ")

    confirm_alone(change_id=change.pk, by=amy, reason="nobody else is here")

    assert RuleChange.objects.get().alone
    second = propose_policy(team=team, by=amy, draft=MONEY)
    person("ann", "admin")
    with pytest.raises(ChangeRefused, match="Another administrator"):
        confirm_alone(change_id=second.pk, by=amy, reason="again")


def test_a_proposal_can_be_turned_down(team, admins):
    amy, ann = admins
    change = propose_policy(team=team, by=amy, draft=MONEY)
    withdraw(change_id=change.pk, by=ann)

    with pytest.raises(ChangeRefused):
        confirm(change_id=change.pk, by=ann)
    assert not Policy.objects.filter(name="Money").exists()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"quorum": ()}, "quorum"),
        ({"quorum": ({"group": "finance", "count": 0},)}, "quorum/0"),
        ({"quorum": ({"group": "nobodies", "count": 1},)}, "quorum/0"),
        ({"quorum": ({"group": None},)}, "quorum/0"),
        ({"tools": ("a*b",)}, "tools/0"),
        ({"tools": ("té",)}, "tools/0"),
        ({"risk": "extreme"}, "risk"),
        ({"risk_at_least": "extreme"}, "risk_at_least"),
        ({"condition": '{"type":"nonsense"}'}, "condition/type"),
        ({"deadline": 0}, "deadline"),
        ({"grant_life": -1}, "grant_life"),
        ({"rejections": 0}, "rejections"),
        ({"escalation": ({"group": "nobodies", "seconds": 5},)}, "escalation/0"),
        ({"escalation": ({"group": "finance", "seconds": 5},), "deadline": None}, "escalation"),
    ],
)
def test_a_policy_that_makes_no_sense_names_its_fields(team, admins, fields, field):
    with pytest.raises(PolicyInvalid) as wrong:
        propose_policy(team=team, by=admins[0], draft=replace(MONEY, **fields))

    assert [where for where, _ in wrong.value.errors] == [field]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"tools": ()}, "tools"),
        ({"window": 0}, "window"),
        ({"max_count": 0}, "max_count"),
        ({"ends_at": "2030-01-01T00:00:00"}, "ends_at"),
        ({"ends_at": "soon"}, "ends_at"),
        ({"max_sum": None}, "max_sum"),
        ({"max_sum": "1e9"}, "sum_of"),
        ({"sum_of": "amount"}, "sum_of"),
    ],
)
def test_a_rule_that_makes_no_sense_names_its_fields(team, admins, fields, field):
    with pytest.raises(PolicyInvalid) as wrong:
        propose_automatic_rule(team=team, by=admins[0], draft=replace(SMALL, **fields))

    assert [where for where, _ in wrong.value.errors] == [field]


def test_an_automatic_rule_replaces_the_one_of_its_name_and_can_be_ended(team, admins):
    amy, ann = admins
    for draft in (SMALL, replace(SMALL, max_count=1)):
        confirm(change_id=propose_automatic_rule(team=team, by=amy, draft=draft).pk, by=ann)
    assert AutomaticRule.objects.get(is_active=True).max_count == 1

    ended = replace(SMALL, is_active=False)
    confirm(change_id=propose_automatic_rule(team=team, by=amy, draft=ended).pk, by=ann)
    assert not AutomaticRule.objects.filter(is_active=True).exists()


def test_lifting_a_stop_takes_two(team, admins):
    amy, ann = admins
    stop(team=team, by=amy)
    confirm(change_id=propose_lifting(team=team, by=amy).pk, by=ann)

    assert team.automatic_stops.get().lifted_by == ann


def test_what_is_open_follows_a_stricter_policy(agent, team, admins, reviewer):
    amy, ann = admins
    approval = opened(agent)
    confirm(change_id=propose_policy(team=team, by=amy, draft=MONEY).pk, by=ann)

    assert tighten_open(team_id=team.pk) == 1

    approval.refresh_from_db()
    assert "group:finance" in approval.pools
    assert cast(approval, reviewer).status == ApprovalStatus.PENDING


def test_a_looser_policy_reaches_what_is_open_only_by_hand_and_on_record(agent, team, admins, reviewer):
    amy, ann = admins
    confirm(change_id=propose_policy(team=team, by=amy, draft=MONEY).pk, by=ann)
    approval = opened(agent)
    looser = replace(MONEY, is_active=False)
    confirm(change_id=propose_policy(team=team, by=amy, draft=looser).pk, by=ann)
    tighten_open(team_id=team.pk)
    assert cast(approval, reviewer).status == ApprovalStatus.PENDING
    with pytest.raises(ChangeRefused):
        reapply(approval_id=approval.pk, by=reviewer)

    decided = reapply(approval_id=approval.pk, by=amy)

    assert (decided.pools, decided.status) == (["team"], ApprovalStatus.APPROVED)
    assert decided.decision.decided_by == reviewer
    assert events(approval)[-2:] == ["approval.recounted", "approval.settled"]
