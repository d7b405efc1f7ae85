"""Where events can meet: an approval in one of the states of approvals/states.py, with the people around it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals import canonical
from approvals.models import Approval, AutomaticRule, Policy
from approvals.services.grants import spend
from runs.clock import database_now
from runs.models import Agent, Membership, RunHead, Step, Team
from runs.services.locking import lock_run
from runs.states import ResumeMode, RunStatus, StepState
from tests.approvals.scenes import KEY, cast, in_doubt, opened, policy

DEADLINE = timedelta(minutes=10)
HOLD = timedelta(minutes=30)
PEOPLE = ("ada", "bob", "cem")  # reviewers: two who race, and one who voted before
SINGLE, PAIR, RULED = "refund", "transfer", "ping"  # tools: one vote, two votes, an automatic rule


@dataclass(frozen=True)
class Scene:
    """One approval and, where a call is in doubt, the card that asks about it."""

    approval: UUID
    run: UUID
    card: UUID | None = None

    @property
    def asks(self) -> UUID:
        """What people see: the card in doubt, or the approval."""
        return self.card or self.approval


def people(team: Team) -> None:
    """Everybody whom events name, and the policies and the rule that the places need."""
    for name, role in (
        *((name, "reviewer") for name in PEOPLE),
        ("ops", "operator"),
        ("amy", "admin"),
        ("ann", "admin"),
    ):
        Membership.objects.create(user=User.objects.create_user(name), team=team, roles=[role])
    agent = Agent.objects.create(team=team, name="racer")
    policy(agent, "Two", (None, 2), tools=[PAIR])
    Policy.objects.filter(name__startswith="Everything").update(is_active=False)
    policy(agent, "One", (None, 1), allow_automatic=True)
    AutomaticRule.objects.create(
        team=team, name="Small", tools=[RULED], window=timedelta(days=365), max_count=10_000,
        ends_at=database_now() + timedelta(days=400), created_by=person("amy"),
    )  # fmt: skip


def person(name: str) -> User:
    return User.objects.get(username=name)


def the_agent() -> Agent:
    return Agent.objects.get(name="racer")


def place(name: str) -> Scene:
    """A new scene in the place of that name."""
    return PLACES[name]()


def _open(tool: str = SINGLE) -> Approval:
    """With arguments of its own: what was rejected before asks for a second person."""
    return opened(the_agent(), tool=tool, args={"order": str(uuid4())}, expires_in=DEADLINE)


def _scene(approval: Approval, card: Approval | None = None) -> Scene:
    return Scene(approval.pk, approval.run_id, card.pk if card else None)


def _held(verdict: str) -> Callable[[], Scene]:
    def make() -> Scene:
        approval = _open()
        words = {"edit": {"args": edited(approval, 0)}, "respond": {"message": "paid by hand"}}.get(verdict, {})
        return _scene(cast(approval, person("cem"), verdict, hold=HOLD, **words))

    return make


def edited(approval: Approval, amount: int) -> str:
    """The arguments that were asked, with an amount."""
    return canonical.dumps({**canonical.parse(approval.args), "amount": amount})


def _ready() -> Approval:
    return cast(_open(), person("cem"))


def _spent() -> Scene:
    approval = _ready()
    _spend(approval)
    return _scene(approval)


def _performing() -> Scene:
    """The engine has spent the grant and makes the call."""
    approval = _ready()
    type(approval.run).objects.filter(pk=approval.run_id).update(resume_mode=ResumeMode.HOSTED)
    RunHead.objects.filter(run=approval.run_id).update(
        status=RunStatus.RUNNING, epoch=1, lease=database_now() + timedelta(days=2)
    )
    _spend(approval)
    Step.objects.create(
        run=approval.run, turn=0, key=approval.key, ordinal=1, phase="act", tool=SINGLE, effect="once",
        args_hash=bytes(32), state=StepState.INTENT, grant_id=approval.pk, epoch=1, build="test",
    )  # fmt: skip
    return _scene(approval)


def _spend(approval: Approval) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, approval.run_id)
        spend(cursor, approval_id=approval.pk, action=approval.action, spent_key=KEY)


def _in_doubt() -> Scene:
    approval = _ready()
    return _scene(approval, in_doubt(approval))


PLACES: dict[str, Callable[[], Scene]] = {
    "pending": lambda: _scene(_open()),
    "one vote of two": lambda: _scene(cast(_open(PAIR), person("cem"))),
    "pending, with a rule": lambda: _scene(_open(RULED)),
    "held": _held("approve"),
    "held edit": _held("edit"),
    "held rejection": _held("reject"),
    "held answer": _held("respond"),
    "ready": lambda: _scene(_ready()),
    "spent": _spent,
    "performing": _performing,
    "in doubt": _in_doubt,
}
