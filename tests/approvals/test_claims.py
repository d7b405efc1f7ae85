"""Claims are soft: they tell who is on it, and block nobody."""

from datetime import timedelta

import pytest

from approvals.errors import AlreadyDecided, ClaimedByOther, NotEligible
from approvals.models import Approval
from approvals.services.claims import claim, release
from approvals.services.sweeping import sweep
from tests.approvals.scenes import cast, events, opened

pytestmark = pytest.mark.django_db


def test_a_second_claim_is_told_who_holds_it(agent, person):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent)
    claim(approval_id=approval.pk, person=ada)

    with pytest.raises(ClaimedByOther) as taken:
        claim(approval_id=approval.pk, person=bob)

    assert taken.value.holder == "ada"


def test_a_claim_never_blocks_a_vote(agent, person):
    approval = opened(agent)
    claim(approval_id=approval.pk, person=person("ada"))

    decided = cast(approval, person("bob"))

    assert (decided.status, decided.claimed_by) == ("approved", None)


def test_a_claim_is_given_back(agent, person):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent)
    claim(approval_id=approval.pk, person=ada)

    with pytest.raises(ClaimedByOther):
        release(approval_id=approval.pk, person=bob)
    assert release(approval_id=approval.pk, person=ada).claimed_by is None
    assert claim(approval_id=approval.pk, person=bob).claimed_by == bob


def test_a_claim_runs_out(agent, person, move_clock, settings):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent)
    claim(approval_id=approval.pk, person=ada)
    move_clock(timedelta(seconds=settings.FERMATA_CLAIM_SECONDS))

    assert claim(approval_id=approval.pk, person=bob).claimed_by == bob
    move_clock(timedelta(seconds=settings.FERMATA_CLAIM_SECONDS))
    assert sweep().freed == 1
    assert Approval.objects.get().claimed_by is None
    assert events(approval)[-1] == "approval.released"


def test_only_those_who_may_decide_may_claim(agent, person):
    with pytest.raises(NotEligible):
        claim(approval_id=opened(agent).pk, person=person("olga", "operator"))


def test_what_is_decided_cannot_be_claimed(agent, reviewer):
    approval = opened(agent)
    cast(approval, reviewer)

    with pytest.raises(AlreadyDecided):
        claim(approval_id=approval.pk, person=reviewer)
