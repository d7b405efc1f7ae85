"""One person votes for another: with dates, one level only, never around the rule that who asked does not decide."""

from datetime import timedelta

import pytest

from approvals.errors import AlreadyVoted, DelegationRefused, NotEligible
from approvals.models import AuditEvent
from approvals.services.delegating import confirm_delegation, delegate, revoke_delegation
from approvals.services.settling import settle
from approvals.states import ApprovalStatus
from runs.clock import database_now
from tests.approvals.scenes import HOLD, cast, in_group, opened, policy

pytestmark = pytest.mark.django_db


def lend(giver, taker, *, days=7, starts_in=timedelta(0), by=None):
    now = database_now()
    return delegate(
        giver=giver, taker=taker, starts_at=now + starts_in, ends_at=now + timedelta(days=days), by=by or giver
    )


@pytest.fixture
def people(person):
    """Ada decides; Bob, an operator, does not."""
    return person("ada"), person("bob", "operator")


def test_a_stand_in_votes_for_who_is_away(agent, people):
    ada, bob = people
    approval = opened(agent)
    with pytest.raises(NotEligible):
        cast(approval, bob)
    lend(ada, bob)

    decided = cast(approval, bob)

    assert decided.status == ApprovalStatus.APPROVED
    assert decided.votes.get().on_behalf_of == ada
    assert AuditEvent.objects.filter(type="delegation.changed").count() == 1


def test_it_begins_and_ends_with_its_dates(agent, people, move_clock):
    ada, bob = people
    lend(ada, bob, starts_in=timedelta(days=1), days=2)
    approval = opened(agent)
    with pytest.raises(NotEligible):
        cast(approval, bob)
    move_clock(timedelta(days=2))
    with pytest.raises(NotEligible):
        cast(approval, bob)


def test_a_delegated_vote_fills_both_seats_and_counts_once(agent, person):
    policy(agent, "Pairs", (None, 2))
    ada, bob = person("ada"), person("bob")
    lend(ada, bob)
    approval = opened(agent)

    assert cast(approval, bob, on_behalf_of=ada).status == ApprovalStatus.PENDING
    for again in ({"voter": bob}, {"voter": ada}):
        with pytest.raises(AlreadyVoted):
            cast(approval, **again)
    assert cast(approval, person("cem")).status == ApprovalStatus.APPROVED


def test_nobody_votes_for_somebody_who_did_not_ask_them_to(agent, person):
    ada, bob = person("ada"), person("bob")

    with pytest.raises(NotEligible):
        cast(opened(agent), bob, on_behalf_of=ada)


def test_who_asked_cannot_have_somebody_else_decide(agent, people):
    """windmill PR#10262 (C06): self-approval through a second path."""
    ada, bob = people
    agent.owners.add(ada)
    lend(ada, bob)

    with pytest.raises(NotEligible, match="stand in for somebody who asked"):
        cast(opened(agent), bob)


def test_who_asked_cannot_vote_as_a_stand_in(agent, people):
    ada, bob = people
    agent.owners.add(bob)
    lend(ada, bob)

    with pytest.raises(NotEligible):
        cast(opened(agent), bob)


def test_it_is_one_level_only(agent, person):
    ada, bob, cem = person("ada"), person("bob", "operator"), person("cem", "operator")
    lend(ada, bob)
    lend(bob, cem)

    with pytest.raises(NotEligible):
        cast(opened(agent), cem)


def test_circles_are_refused(person):
    ada, bob, cem = person("ada"), person("bob"), person("cem")
    lend(ada, bob)
    lend(bob, cem)

    for giver, taker in ((bob, ada), (cem, ada), (ada, ada)):
        with pytest.raises(DelegationRefused):
            lend(giver, taker)


def test_dates_that_make_no_sense_are_refused(person):
    ada, bob = person("ada"), person("bob")

    for days in (0, -1, 91):
        with pytest.raises(DelegationRefused):
            lend(ada, bob, days=days)


def test_only_the_giver_or_an_administrator_gives_a_vote_away(person, django_user_model):
    ada, bob, amy = person("ada"), person("bob"), person("amy", "admin")

    with pytest.raises(DelegationRefused):
        lend(ada, bob, by=bob)
    with pytest.raises(DelegationRefused):
        lend(ada, django_user_model.objects.create_user("eve"))
    assert lend(ada, bob, by=amy).created_by == amy


def test_for_high_risk_an_uninvolved_administrator_must_confirm_it(agent, people, person):
    ada, bob = people
    given = lend(ada, bob)
    approval = opened(agent, risk="high")
    with pytest.raises(NotEligible):
        cast(approval, bob)
    for involved in (ada, bob, person("rob")):
        with pytest.raises(DelegationRefused):
            confirm_delegation(delegation_id=given.pk, by=involved)

    confirm_delegation(delegation_id=given.pk, by=person("amy", "admin"))

    assert cast(approval, bob).status == ApprovalStatus.APPROVED


def test_a_vote_does_not_count_once_its_delegation_is_taken_back(agent, people, move_clock):
    ada, bob = people
    given = lend(ada, bob)
    approval = opened(agent)
    cast(approval, bob, hold=HOLD)

    revoke_delegation(delegation_id=given.pk, by=ada)
    revoke_delegation(delegation_id=given.pk, by=ada)

    move_clock(HOLD)
    assert settle(approval_id=approval.pk).status == ApprovalStatus.PENDING
    assert AuditEvent.objects.filter(type="delegation.changed").count() == 2


def test_who_joined_lately_does_not_count_for_high_risk(agent, person, settings, move_clock):
    settings.FERMATA_PROBATION_HOURS = 24
    policy(agent, "Money", ("finance", 1))
    fay = in_group(person("fay"), "finance")
    low, high = opened(agent), opened(agent, args={"order": "A-8"}, risk="high")

    assert cast(low, fay).status == ApprovalStatus.APPROVED
    with pytest.raises(NotEligible, match="You joined less than"):
        cast(high, fay)
    move_clock(timedelta(hours=25))
    assert cast(high, fay).status == ApprovalStatus.APPROVED


def test_joining_a_group_again_starts_over(agent, person, settings, move_clock):
    settings.FERMATA_PROBATION_HOURS = 24
    policy(agent, "Money", ("finance", 1))
    fay = in_group(person("fay", "operator"), "finance")
    move_clock(timedelta(hours=25))
    fay.groups.clear()
    in_group(fay, "finance")

    with pytest.raises(NotEligible):
        cast(opened(agent, risk="high"), fay)
