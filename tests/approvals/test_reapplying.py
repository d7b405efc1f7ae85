"""A looser policy reaches what waits only by the hand of an administrator, asked first, and on record."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from approvals.models import Approval, AuditEvent, Policy
from approvals.services.policymaking import reapply_policy
from approvals.states import ApprovalStatus
from runs.models import Agent
from tests.approvals.scenes import HOLD, cast, events, opened, policy
from tests.approvals.test_pages import browser

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def money(agent: Agent) -> Policy:
    return policy(agent, "Money", (None, 2), tools=["refund"])


def loosen(money: Policy) -> None:
    money.versions.create(number=2, quorum='[{"count":1,"group":null}]', tools=["refund"])


def test_it_is_asked_first_and_then_done(
    agent: Agent, money: Policy, reviewer: User, person: Callable[..., User]
) -> None:
    voted, untouched = cast(opened(agent), reviewer), opened(agent, args={"order": "A-8"})
    other = opened(agent, tool="ping")
    loosen(money)
    amy = person("amy", "admin")
    page, path = browser(amy), f"/rules/policies/{money.pk}/reapply/"

    assert path in page.get(f"/rules/policies/{money.pk}/").content.decode()
    asked = page.get(path).content.decode()
    assert "2 open decisions were asked" in asked
    assert Approval.objects.get(pk=voted.pk).status == ApprovalStatus.PENDING

    assert page.post(path).status_code == 302

    assert Approval.objects.get(pk=voted.pk).status == ApprovalStatus.APPROVED
    assert Approval.objects.get(pk=untouched.pk).status == ApprovalStatus.PENDING
    assert cast(untouched, reviewer).status == ApprovalStatus.APPROVED
    assert events(other) == ["approval.requested"]
    changes = AuditEvent.objects.filter(type="approval.recounted", actor=f"person:{amy.pk}")
    assert {change.chain for change in changes} == {f"approval:{voted.pk}", f"approval:{untouched.pk}"}


def test_a_post_needs_its_token(agent: Agent, money: Policy, person: Callable[..., User]) -> None:
    approval = opened(agent)
    loosen(money)
    page = browser(person("amy", "admin"), csrf=True)
    assert page.post(f"/rules/policies/{money.pk}/reapply/").status_code == 403
    assert events(approval) == ["approval.requested"]


def test_a_vote_that_can_still_be_taken_back_stays_so(
    agent: Agent, reviewer: User, person: Callable[..., User]
) -> None:
    held = cast(opened(agent), reviewer, hold=HOLD)
    everything = Policy.objects.get(name__startswith="Everything")
    assert reapply_policy(policy=everything, by=person("amy", "admin")) == 1
    assert Approval.objects.get(pk=held.pk).status == ApprovalStatus.HELD


def test_where_nothing_waits_there_is_nothing_to_press(money: Policy, person: Callable[..., User]) -> None:
    page = browser(person("amy", "admin"))
    assert "/reapply/" not in page.get(f"/rules/policies/{money.pk}/").content.decode()
    assert "disabled" in page.get(f"/rules/policies/{money.pk}/reapply/").content.decode()
