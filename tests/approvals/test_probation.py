"""For high risk, a place in a team or group and a password count a day after they were new; unless the operator made
the person on the server's command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from approvals.errors import NotEligible
from approvals.models import Approval, Policy
from approvals.services.delegating import confirm_delegation, delegate
from approvals.services.settling import settle
from approvals.states import ApprovalStatus
from runs.clock import database_now
from runs.models import Agent
from runs.services.passwords import change_password, draw_link, open_link, use_link
from tests.approvals.scenes import HOLD, cast, in_group, opened, policy

pytestmark = pytest.mark.django_db(transaction=True)

NEW = "a stapler under the willow"
LATER = timedelta(hours=24, seconds=1)
MoveClock = Callable[[timedelta], None]


@pytest.fixture(autouse=True)
def a_day(settings) -> None:
    settings.FERMATA_PROBATION_HOURS = 24


def high(agent: Agent, **fields: object) -> Approval:
    return opened(agent, risk="high", **fields)


def test_a_new_password_does_not_count_for_a_day(agent: Agent, reviewer: User, move_clock: MoveClock) -> None:
    move_clock(LATER)
    change_password(person=reviewer, password=NEW)
    low, asked = opened(agent), high(agent, args={"order": "A-8"})
    from_then = database_now() + timedelta(hours=24)

    assert cast(low, reviewer).status == ApprovalStatus.APPROVED
    with pytest.raises(
        NotEligible, match=r"Your password was set less than 24 h ago\..*you can decide from"
    ) as refused:
        cast(asked, reviewer)
    assert f"{from_then:%Y-%m-%d %H}" in str(refused.value)

    move_clock(LATER)
    assert cast(asked, reviewer).status == ApprovalStatus.APPROVED


def test_the_card_says_why(agent: Agent, reviewer: User, move_clock: MoveClock) -> None:
    move_clock(LATER)
    change_password(person=reviewer, password=NEW)
    client = Client()
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")

    page = client.get(f"/approvals/{high(agent).pk}/").content.decode()

    assert "Your password was set less than 24 h ago. For high risk you can decide from" in page
    assert "For 1 day afterwards you cannot decide about high risk." in client.get("/password/").content.decode()


def test_a_vote_under_hold_falls_with_a_new_password(agent: Agent, reviewer: User, move_clock: MoveClock) -> None:
    move_clock(LATER)
    held = cast(high(agent), reviewer, hold=HOLD)
    link = draw_link()
    open_link(person=reviewer, digest=link.digest, actor="system")
    use_link(text=link.text, password=NEW)
    move_clock(HOLD)

    assert settle(approval_id=held.pk).status == ApprovalStatus.PENDING


def test_it_is_no_better_to_stand_in(agent: Agent, person: Callable[..., User], move_clock: MoveClock) -> None:
    """Neither with a new password for somebody, nor for somebody with a new password."""
    policy(agent, "Money", ("finance", 1))
    fay, tom, amy = in_group(person("fay"), "finance"), person("tom"), person("amy", "admin")
    move_clock(LATER)
    now = database_now()
    given = delegate(giver=fay, taker=tom, starts_at=now, ends_at=now + timedelta(days=9), by=fay)
    confirm_delegation(delegation_id=given.pk, by=amy)
    asked = high(agent)

    change_password(person=tom, password=NEW)
    with pytest.raises(NotEligible, match="Your password was set"):
        cast(asked, tom, on_behalf_of=fay)
    move_clock(LATER)
    change_password(person=fay, password=NEW)
    with pytest.raises(NotEligible):
        cast(asked, tom, on_behalf_of=fay)
    move_clock(LATER)
    assert cast(asked, tom, on_behalf_of=fay).status == ApprovalStatus.APPROVED


def test_whom_the_operator_makes_counts_at_once_and_what_they_become_later_does_not(agent: Agent) -> None:
    Policy.objects.update(is_active=False)
    policy(agent, "Money", ("finance", 1), tools=["refund"])
    policy(agent, "Law", ("legal", 1), tools=["sue"])
    call_command("create_person", "ada", "--password", "a pear in the attic", "--group", "finance", stdout=StringIO())
    ada = User.objects.get(username="ada")

    assert cast(high(agent), ada).status == ApprovalStatus.APPROVED
    in_group(ada, "legal")
    with pytest.raises(NotEligible, match="You joined less than 24 h ago"):
        cast(high(agent, tool="sue"), ada)
    change_password(person=ada, password=NEW)
    with pytest.raises(NotEligible, match="Your password was set"):
        cast(high(agent, args={"order": "A-9"}), ada)
