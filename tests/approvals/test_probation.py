"""For high risk, a place in a team or group and a password count a day after they were new; unless the operator made
the person on the server's command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from approvals.errors import ChangeRefused, NotEligible
from approvals.models import Approval, Policy, RuleChange
from approvals.services.changes import confirm, confirm_alone, withdraw
from approvals.services.delegating import confirm_delegation, delegate
from approvals.services.guarding import propose_agent, propose_roles
from approvals.services.policymaking import propose_lifting
from approvals.services.settling import settle
from approvals.states import ApprovalStatus
from runs.clock import database_now
from runs.models import Agent, Team
from runs.services.passwords import change_password, draw_link, open_link, use_link
from runs.services.people import set_roles
from tests.approvals.scenes import HOLD, cast, in_group, opened, policy
from tests.support.pages import browser

pytestmark = pytest.mark.django_db(transaction=True)

NEW = "a stapler under the willow"
LATER = timedelta(hours=24, seconds=1)
HOUR = timedelta(hours=1)  # the finest that is asked of a time
MoveClock = Callable[[timedelta], None]


@pytest.fixture(autouse=True)
def a_day(settings) -> None:
    settings.FERMATA_PROBATION_HOURS = 24


def high(agent: Agent, **fields: object) -> Approval:
    return opened(agent, risk="high", **fields)


def test_a_new_password_does_not_count_for_a_day(
    agent: Agent, reviewer: User, move_clock: MoveClock, start_of_next: MoveClock
) -> None:
    move_clock(LATER)
    start_of_next(HOUR)
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
    client = browser(reviewer)

    page = client.get(f"/approvals/{high(agent).pk}/").content.decode()

    assert "Your password was set less than 24 h ago. For high risk you can decide from" in page
    said = client.get("/password/").content.decode()
    assert "For 1 day afterwards you cannot decide about high risk, nor confirm" in said


def test_a_vote_under_hold_falls_with_a_new_password(agent: Agent, reviewer: User, move_clock: MoveClock) -> None:
    move_clock(LATER)
    held = cast(high(agent), reviewer, hold=HOLD)
    link = draw_link()
    open_link(person=reviewer, digest=link.digest, actor="system")
    use_link(digest=link.digest, password=NEW)
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


# --- confirming --------------------------------------------------------------------------------------------------


def test_a_new_administrator_confirms_from_the_next_day_on(
    team: Team, person, move_clock: MoveClock, start_of_next: MoveClock
) -> None:
    amy, ann, bob = person("amy", "admin"), person("ann", "admin"), person("bob", "operator")
    move_clock(LATER)
    start_of_next(HOUR)
    confirm(change_id=propose_roles(team=team, by=amy, person="bob", roles=["admin"]).pk, by=ann)
    change, from_then = propose_lifting(team=team, by=amy), database_now() + timedelta(hours=24)

    with pytest.raises(ChangeRefused, match=r"You became an administrator less than 24 h ago\.") as refused:
        confirm(change_id=change.pk, by=bob)
    assert f"you can decide from {from_then:%Y-%m-%d %H}" in str(refused.value)
    page = page_of(bob, change)
    assert "You became an administrator less than 24 h ago. For high risk you can decide from" in page
    assert ">Confirm</button>" not in page

    move_clock(LATER)
    confirm(change_id=change.pk, by=bob)


def test_a_new_administrator_may_propose_and_turn_down(team: Team, person, move_clock: MoveClock) -> None:
    amy, ann = person("amy", "admin"), person("ann", "admin")
    move_clock(LATER)
    change_password(person=ann, password=NEW)
    withdraw(change_id=propose_lifting(team=team, by=amy).pk, by=ann)
    confirm(change_id=propose_lifting(team=team, by=ann).pk, by=amy)


@pytest.mark.parametrize("make", ["admin", "superuser"])
def test_a_new_password_confirms_nothing_for_a_day(team: Team, person, move_clock: MoveClock, make: str) -> None:
    amy = person("amy", "admin")
    ann = person("ann", "admin") if make == "admin" else User.objects.create_superuser("root")
    move_clock(LATER)
    change = propose_lifting(team=team, by=amy)
    change_password(person=ann, password=NEW)
    with pytest.raises(ChangeRefused, match="Your password was set less than 24 h ago"):
        confirm(change_id=change.pk, by=ann)
    move_clock(LATER)
    confirm(change_id=change.pk, by=ann)


def test_an_old_reviewer_who_becomes_an_administrator_votes_on(agent, team: Team, person, move_clock: MoveClock):
    amy, ann, bob = person("amy", "admin"), person("ann", "admin"), person("bob", "reviewer")
    move_clock(LATER)
    confirm(change_id=propose_roles(team=team, by=amy, person="bob", roles=["admin", "reviewer"]).pk, by=ann)

    assert cast(high(agent), bob).status == ApprovalStatus.APPROVED
    with pytest.raises(ChangeRefused, match="You became an administrator"):
        confirm(change_id=propose_lifting(team=team, by=amy).pk, by=bob)


def test_an_old_administrator_who_becomes_a_reviewer_confirms_on(agent, team: Team, person, move_clock: MoveClock):
    amy, ann, bob = person("amy", "admin"), person("ann", "admin"), person("bob", "admin")
    move_clock(LATER)
    confirm(change_id=propose_roles(team=team, by=amy, person="bob", roles=["admin", "reviewer"]).pk, by=ann)

    with pytest.raises(NotEligible, match="You joined less than 24 h ago"):
        cast(high(agent), bob)
    confirm(change_id=propose_lifting(team=team, by=amy).pk, by=bob)


def test_the_only_administrator_makes_no_second_signature_for_today(team: Team, person, move_clock: MoveClock) -> None:
    amy, bob = person("amy", "admin"), person("bob", "operator")
    move_clock(LATER)
    second = propose_roles(team=team, by=amy, person="bob", roles=["admin"])
    confirm_alone(change_id=second.pk, by=amy, reason="nobody else is here")
    change = propose_lifting(team=team, by=amy)

    with pytest.raises(ChangeRefused, match="You became an administrator"):
        confirm(change_id=change.pk, by=bob)
    with pytest.raises(ChangeRefused, match="Another administrator must confirm it"):
        confirm_alone(change_id=change.pk, by=amy, reason="bob is too new")

    move_clock(LATER)
    confirm(change_id=change.pk, by=bob)


def test_the_only_administrator_waits_with_a_new_password(team: Team, person, move_clock: MoveClock) -> None:
    amy = person("amy", "admin")
    move_clock(LATER)
    change_password(person=amy, password=NEW)
    change = propose_lifting(team=team, by=amy)
    with pytest.raises(ChangeRefused, match="Your password was set less than 24 h ago"):
        confirm_alone(change_id=change.pk, by=amy, reason="nobody else is here")
    assert "Your password was set less than 24 h ago. For high risk you can decide from" in page_of(amy, change)
    assert "Put it in force alone" not in page_of(amy, change)

    move_clock(LATER)
    assert "Put it in force alone" in page_of(amy, change)
    confirm_alone(change_id=change.pk, by=amy, reason="nobody else is here")


def test_whom_the_operator_makes_confirms_at_once(team: Team, person) -> None:
    change = propose_lifting(team=team, by=person("amy", "admin"))
    for name, *options in (("ada", "--role", "admin"), ("root", "--superuser")):
        call_command("create_person", name, "--password", "a pear in the attic", *options, stdout=StringIO())
        confirm(change_id=change.pk, by=User.objects.get(username=name))
        change = propose_lifting(team=team, by=User.objects.get(username="amy"))


@pytest.mark.parametrize("fresh", ["proposer", "confirmer"])
def test_a_team_is_not_covered_by_who_is_too_new_there(agent, team: Team, person, move_clock: MoveClock, fresh: str):
    elsewhere = Team.objects.create(name="Elsewhere")
    amy, ann = person("amy", "admin"), person("ann", "admin")
    move_clock(LATER)
    set_roles(person=amy if fresh == "proposer" else ann, team=elsewhere, roles=["operator"], by=amy)
    set_roles(person=amy if fresh == "proposer" else ann, team=elsewhere, roles=["admin"], by=amy)
    change = propose_agent(agent=agent, by=amy, owners=[], team="Elsewhere")
    said = "It touches Elsewhere too" if fresh == "proposer" else "You became an administrator less than 24 h ago"

    with pytest.raises(ChangeRefused, match=said):
        confirm(change_id=change.pk, by=ann)

    move_clock(LATER)
    confirm(change_id=change.pk, by=ann)


def page_of(viewer: User, change: RuleChange) -> str:
    client = browser(viewer)
    return client.get(f"/rules/changes/{change.pk}/").content.decode()
