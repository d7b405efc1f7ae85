"""Takes the README's picture: `python -m pytest tests/browser/picture.py` writes docs/images/inbox.png."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from approvals import canonical
from approvals.services.asking import Ask
from approvals.services.claims import claim
from approvals.services.suspending import suspend
from runs.models import Team
from runs.principals import AgentPrincipal
from runs.services.agents import create_agent
from runs.services.starting import PostedSnapshot, Resume
from runs.states import ResumeMode
from tests.approvals.scenes import cast
from tests.browser.conftest import Visitor

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "inbox.png"
HISTORY = [
    {"role": "user", "content": "My blender from order A-7731 arrived with a cracked jug. Can I get my money back?"},
    {"role": "assistant", "content": "The photos show the crack, and the order is five days old."},
]
REFUND = canonical.dumps(
    {"order": "A-7731", "amount": canonical.parse("49.90"), "currency": "EUR", "reason": "damaged in transit"}
)
WHY = """The customer sent **two photos** of a cracked jug. The order is five days old; the policy allows 30.

- paid 49.90 EUR by card
- no earlier refunds on this account"""


def agent(team: Team, name: str, target: str) -> Callable[..., object]:
    """An agent's way to ask for one thing."""
    registered, issued = create_agent(name=name, team=team, target=target)
    principal = AgentPrincipal(agent=registered, key=issued.key)

    def ask(tool: str, args: str, title: str, **fields: object) -> object:
        snapshot = PostedSnapshot(
            state={"order": "A-7731"}, history=HISTORY, position=None, pending=[], schema_name=name, schema=1
        )
        return suspend(
            by=principal,
            external_id=title,
            title=title,
            snapshot=snapshot,
            resume=Resume(mode=ResumeMode.POLL),
            asks=[Ask(key="call_1", tool=tool, args=args, title=title, **fields)],  # type: ignore[arg-type]
        ).approvals[0]

    return ask


@pytest.mark.browser
def test_take_the_picture(visit: Callable[..., Visitor], team: Team, ana: User, ben: User) -> None:
    refund = agent(team, "refund-agent", "payments, production")
    ops = agent(team, "ops-agent", "cluster eu-west-1")
    mail = agent(team, "mail-agent", "")
    hours = {n: timedelta(hours=n) for n in (1, 3, 20, 52)}
    card = refund("refund", REFUND, "Refund order A-7731 in full", risk="medium", description=WHY, expires_in=hours[1])
    ops("k8s.rollout", '{"image":"checkout:991"}', "Roll out checkout build 991", risk="high", expires_in=hours[3])
    ops("shell.run", '{"command":"rm -r /tmp/\\u200bcache"}', "Clear the build cache", expires_in=hours[20])
    held = refund("coupon.create", '{"percent":10}', "Give customer c-204 a 10 % coupon", expires_in=hours[52])
    mail("mail.send_campaign", '{"recipients":18422}', "Send the December newsletter to 18,422 people")
    claim(approval_id=held.pk, person=ben)  # type: ignore[attr-defined]
    for order in ("A-7702", "A-7688"):
        done = refund("refund", canonical.dumps({"order": order, "amount": 12}), f"Refund order {order}")
        cast(done, ben)  # type: ignore[arg-type]
    page = visit(ana, width=1360, height=820).open(card, "?tab=unclaimed")
    page.wait_for_load_state("networkidle")
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURE)
    assert PICTURE.stat().st_size < 300_000
