"""The pages of the rules and of standing in: proposed and confirmed in a browser, and readable in every look."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from approvals.models import AutomaticRule, Policy
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.services.automatic import stop
from approvals.services.changes import confirm
from approvals.services.delegating import delegate
from approvals.services.policymaking import propose_automatic_rule, propose_policy
from runs.clock import database_now
from runs.models import Team
from tests.browser.conftest import Visitor
from tests.browser.test_accessibility import LOOKS, WIDTHS, check

pytestmark = pytest.mark.browser

MONEY = PolicyDraft(
    name="Money above the limit of a single person",
    quorum=({"group": None, "count": 1}, {"group": "finance", "count": 2}),
    tools=("refund", "payments.transfer.international.*"),
    condition='{"properties": {"amount": {"minimum": 1000}}}',
    deadline=93_600,
    escalation=({"group": "finance", "seconds": 5400},),
    require_reason=True,
)
SMALL = RuleDraft(
    name="Small refunds", tools=("refund",), window=86_400, max_count=20, ends_at="2100-01-01T00:00:00Z",
    sum_of="/amount", max_sum="250.5",
)  # fmt: skip


@pytest.fixture
def admins(person: Callable[..., User], team: Team) -> tuple[User, User]:
    """Two administrators, with one rule of each kind in force and one proposed."""
    Group.objects.create(name="finance")
    amy, ann = person("amy", "admin"), person("ann", "admin")
    confirm(change_id=propose_policy(team=team, by=amy, draft=MONEY).pk, by=ann)
    confirm(change_id=propose_automatic_rule(team=team, by=amy, draft=SMALL).pk, by=ann)
    propose_policy(team=team, by=ann, draft=PolicyDraft(name="Nights", quorum=(), deny=True, tools=("deploy",)))
    return amy, ann


def pages(team: Team) -> list[str]:
    policy = Policy.objects.get(name=MONEY.name)
    return [
        "/rules/",
        f"/rules/policies/{policy.pk}/",
        f"/rules/teams/{team.pk}/policies/propose/?from={policy.pk}",
        f"/rules/teams/{team.pk}/automatic/propose/",
        "/delegations/",
    ]


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_in_every_look(
    visit: Callable[..., Visitor], admins: tuple[User, User], team: Team, look: dict[str, Any]
) -> None:
    amy, ann = admins
    now = database_now()
    delegate(giver=amy, taker=ann, starts_at=now, ends_at=now + timedelta(days=3), by=amy)
    stop(team=team, by=ann, reason="Twelve refunds in a minute.")
    visitor = visit(amy, **look)
    for path in pages(team):
        check(visitor.go(path))


def test_nothing_scrolls_sideways(visit: Callable[..., Visitor], admins: tuple[User, User], team: Team) -> None:
    visitor = visit(admins[0])
    for width in WIDTHS:
        visitor.page.set_viewport_size({"width": width, "height": 900})
        for path in pages(team):
            page = visitor.go(path)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)


def test_one_proposes_and_another_confirms(visit: Callable[..., Visitor], admins: tuple[User, User]) -> None:
    amy, ann = admins
    page = visit(amy).go("/rules/")
    page.get_by_role("button", name="Propose to end it").click()
    page.get_by_text("Another administrator must confirm it.").wait_for()
    page = visit(ann).go("/rules/")
    page.get_by_role("button", name="Confirm").click()
    page.get_by_text("None: people decide about everything.").wait_for()
    assert not AutomaticRule.objects.filter(is_active=True).exists()
