"""The pages of the rules and of standing in: proposed and confirmed in a browser, and readable in every look."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group, User

from approvals.models import AutomaticRule, Policy, RuleChange
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.services.automatic import stop
from approvals.services.changes import confirm, confirm_alone
from approvals.services.delegating import delegate
from approvals.services.guarding import propose_key, propose_members, propose_roles, propose_webhook
from approvals.services.policymaking import propose_automatic_rule, propose_policy
from runs.clock import database_now
from runs.models import Agent, Membership, Team, Webhook
from runs.services.agents import create_agent
from runs.services.passwords import draw_link, open_link
from runs.services.webhooks import set_webhook
from tests.approvals.scenes import in_group
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
    now = database_now()
    amy, ann = person("amy", "admin"), person("ann", "admin")
    confirm(change_id=propose_policy(team=team, by=amy, draft=MONEY).pk, by=ann)
    confirm(change_id=propose_automatic_rule(team=team, by=amy, draft=SMALL).pk, by=ann)
    propose_policy(team=team, by=ann, draft=PolicyDraft(name="Nights", quorum=(), deny=True, tools=("deploy",)))
    in_group(person("henrietta.montgomery-featherstonehaugh"), "finance")
    propose_members(team=team, by=ann, group="finance", add=["amy"], remove=["henrietta.montgomery-featherstonehaugh"])
    agent, _ = create_agent(name="refund-agent", team=team, target="payments, production", owners=[ann])
    propose_key(agent=agent, by=ann, scopes=["runs:read", "runs:write"])
    set_webhook(agent=agent, url=f"http://127.0.0.1:9/{'a-path-without-an-end' * 9}")
    Webhook.objects.update(verified_at=now, failing_since=now, failures=3, last_error="it answered 500")
    propose_webhook(agent=agent, by=ann, url="http://127.0.0.1:9/", new_secret=True)
    return amy, ann


def pages(team: Team) -> list[str]:
    policy, agent = Policy.objects.get(name=MONEY.name), Agent.objects.get()
    return [
        "/people/",
        f"/people/teams/{team.pk}/roles/propose/?person=amy",
        f"/people/teams/{team.pk}/groups/propose/?group=finance",
        f"/people/agents/{agent.pk}/propose/",
        f"/people/agents/{agent.pk}/keys/propose/",
        f"/people/agents/{agent.pk}/webhook/",
        f"/people/agents/{agent.pk}/webhook/propose/",
        *(f"/rules/changes/{change.pk}/" for change in RuleChange.objects.all()),
        "/password/",
        "/rules/",
        f"/rules/policies/{policy.pk}/",
        f"/rules/teams/{team.pk}/policies/propose/?from={policy.pk}",
        f"/rules/teams/{team.pk}/automatic/propose/",
        "/delegations/",
    ]


def alone(visit: Callable[..., Visitor], amy: User, team: Team, **look: Any) -> Visitor:
    """The browser of an administrator who has just been the only one, and changed something."""
    Membership.objects.filter(team=team, roles__contains=["admin"]).exclude(user=amy).update(roles=["operator"])
    change = propose_roles(team=team, by=amy, person="ann", roles=["reviewer", "operator"])
    confirm_alone(change_id=change.pk, by=amy, reason="The others left, and the refunds of the night must go out.")
    return visit(amy, **look)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("look", LOOKS)
def test_every_page_in_two_looks(
    visit: Callable[..., Visitor], admins: tuple[User, User], team: Team, look: dict[str, Any]
) -> None:
    amy, ann = admins
    now = database_now()
    delegate(giver=amy, taker=ann, starts_at=now, ends_at=now + timedelta(days=3), by=amy)
    stop(team=team, by=ann, reason="Twelve refunds in a minute.")
    visitor = visit(amy, **look)
    for path in pages(team):
        check(visitor.go(path))
    link = draw_link()
    open_link(person=ann, digest=link.digest, actor="system")
    check(visit(None, **look).go(f"/password/{link.text}/"))
    check(visit(None, **look).go("/password/none/"))
    check(alone(visit, amy, team, **look).go("/"))
    root = visit(User.objects.create_superuser("root"), **look)
    for path in ("/rules/", "/delegations/"):
        check(root.go(path))


@pytest.mark.timeout(300)
def test_nothing_scrolls_sideways(visit: Callable[..., Visitor], admins: tuple[User, User], team: Team) -> None:
    visitor = alone(visit, admins[0], team)
    for width in WIDTHS:
        visitor.page.set_viewport_size({"width": width, "height": 900})
        for path in ("/", *pages(team)):
            page = visitor.go(path)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)


def test_one_proposes_and_another_confirms(visit: Callable[..., Visitor], admins: tuple[User, User]) -> None:
    amy, ann = admins
    page = visit(amy).go("/rules/")
    page.get_by_role("button", name="Propose to end it").click()
    page.get_by_text("It was you who proposed it: another administrator must confirm it.", exact=True).wait_for()
    page = visit(ann).go("/rules/")
    page.get_by_role("button", name="Confirm").click()
    page.get_by_text("None: people decide about everything.").wait_for()
    assert not AutomaticRule.objects.filter(is_active=True).exists()


def test_a_superuser_confirms_from_the_page_of_the_rules(
    visit: Callable[..., Visitor], admins: tuple[User, User]
) -> None:
    page = visit(User.objects.create_superuser("root")).go("/")
    page.get_by_role("link", name="Rules").click()
    page.get_by_role("heading", name="Proposals of Default").wait_for()
    asked = page.get_by_role("listitem").filter(has_text="Nights")
    asked.get_by_role("button", name="Confirm").click()
    asked.wait_for(state="detached")
    assert Policy.objects.get(name="Nights").versions.get().deny


def test_a_group_is_changed_by_two(visit: Callable[..., Visitor], admins: tuple[User, User], team: Team) -> None:
    amy, _ = admins
    abe = User.objects.create(username="abe")
    Membership.objects.create(user=abe, team=team, roles=["admin"])
    page = visit(amy).go("/people/")
    page.get_by_role("link", name="Who is in finance").click()
    page.get_by_label("Who joins").fill("ann")
    page.get_by_role("button", name="Propose").click()
    page.get_by_text("It was you who proposed it: another administrator must confirm it.", exact=True).wait_for()
    page = visit(abe).go(urlsplit(page.url).path)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_role("heading", name="Rules", exact=True).wait_for()
    assert User.objects.filter(groups__name="finance", username="ann").exists()
