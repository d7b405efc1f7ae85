"""Scenes for tests: a run parked at a gate, with people around it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Group, User
from django.db import connection, transaction

from approvals import canonical
from approvals.models import Approval, AuditEvent, Policy
from approvals.services.doubt import open_in_doubt
from approvals.services.grants import spend
from approvals.services.opening import Ask, RunFacts, open_approvals, prepare
from approvals.services.voting import vote
from approvals.states import ApprovalKind
from checkpoints import codec
from runs import bodies
from runs.clock import database_now
from runs.engine.gates import PrepareAgain
from runs.hooks import hooks
from runs.models import Agent, Gate, Membership, Run, RunHead, Step, Team
from runs.services.locking import lock_run
from runs.states import GateKind, ResumeMode, RunKind, RunStatus, StepState, SuspendReason

SNAPSHOT = "5" * 64
KEY = "unit-1"  # under which a grant is spent


def facts(run: Run) -> RunFacts:
    return RunFacts(run_id=run.pk, team_id=run.team_id, agent_id=run.agent_id, agent=run.agent.name)


def ask(key: str = "call_1", *, args: Any = None, **fields: Any) -> Ask:
    """A refund, unless told otherwise. `args` is a JSON value."""
    return Ask(
        **{
            "key": key,
            "tool": "refund",
            "args": canonical.dumps({"order": "A-7", "amount": 49} if args is None else args),
            "title": "Refund order A-7",
            **fields,
        }
    )


def parked_run(agent: Agent, keys: Sequence[str] = ("call_1",), **fields: Any) -> Run:
    """A run that waits at gates of these keys."""
    run_id = uuid4()
    run = Run.objects.create(
        id=run_id,
        team=agent.team,
        agent=agent,
        kind=RunKind.EXTERNAL,
        resume_mode=ResumeMode.POLL,
        title="Refund agent",
        input=bodies.seal(codec.encode(None, path="input"), bodies.input_place(run_id)),
        **fields,
    )
    RunHead.objects.create(run=run, status=RunStatus.SUSPENDED, reason=SuspendReason.APPROVAL, head_seq=0)
    for ordinal, key in enumerate(keys):
        Gate.objects.create(
            run=run, turn=0, key=key, ordinal=ordinal, phase="act", kind=GateKind.APPROVAL, question_hash=bytes(32)
        )
    return run


def open_on(run: Run, *asks: Ask) -> list[Approval]:
    """Open approvals on a run, as the engine would, in one transaction."""
    while True:
        prepared = prepare(asks, run=facts(run))
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                lock_run(cursor, run.pk)
                opened = open_approvals(cursor, prepared, run_id=run.pk, turn=0, snapshot_digest=SNAPSHOT)
        except PrepareAgain:
            continue
        return [Approval.objects.get(pk=each.id) for each in opened]


def close_run(cursor: Any, run: Run, reason: str) -> None:
    """What ends with a run, under its lock."""
    hooks().run_ended(
        cursor,
        run_id=run.pk,
        team_id=run.team_id,
        reason=reason,
        type="run.finished",
        actor="system",
        body={"status": "failed", "error": ""},
    )


def opened(agent: Agent, **fields: Any) -> Approval:
    """One open approval on a new parked run."""
    question = ask(**fields)
    return open_on(parked_run(agent, [question.key]), question)[0]


def cast(approval: Approval, voter: User, verdict: str = "approve", **fields: Any) -> Approval:
    """Vote on the approval as it stands now."""
    review = Approval.objects.values_list("review", flat=True).get(pk=approval.pk)
    return vote(**{"approval_id": approval.pk, "voter": voter, "verdict": verdict, "review": review, **fields})


def in_doubt(approved: Approval, *, safe_in: timedelta = timedelta(0)) -> Approval:
    """The granted call was started, and its worker died: the run waits for somebody who knows."""
    with transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, approved.run_id)
        spend(cursor, approval_id=approved.pk, action=approved.action, spent_key=KEY)
        Step.objects.create(
            run=approved.run, turn=0, key=approved.key, ordinal=1, phase="act", tool="refund", effect="once",
            args_hash=bytes(32), state=StepState.INTENT, grant_id=approved.pk, epoch=1, build="test",
        )  # fmt: skip
        RunHead.objects.filter(run=approved.run).update(status=RunStatus.SUSPENDED, reason=SuspendReason.IN_DOUBT)
        type(approved.run).objects.filter(pk=approved.run_id).update(resume_mode=ResumeMode.HOSTED)
        for _ in range(2):  # asking again changes nothing
            now = database_now()
            open_in_doubt(
                cursor, run_id=approved.run_id, turn=0, key=approved.key, tool="refund", arguments={"order": "A-7"},
                generation=0, started_at=now, safe_at=now + safe_in, approval_id=approved.pk,
            )  # fmt: skip
    return Approval.objects.get(run=approved.run_id, kind=ApprovalKind.IN_DOUBT)


def policy(agent: Agent, name: str, *seats: tuple[str | None, int], **fields: Any) -> Policy:
    """A policy of the agent's team: `policy(agent, "Money", ("finance", 2), ("legal", 1), tools=["refund"])`."""
    made = Policy.objects.create(team=agent.team, name=name)
    quorum = canonical.dumps([{"group": group, "count": count} for group, count in seats])
    made.versions.create(number=1, quorum=quorum, **fields)
    return made


def member(name: str, team: Team, *roles: str) -> User:
    user = User.objects.create_user(name)
    Membership.objects.create(user=user, team=team, roles=list(roles))
    return user


def in_group(user: User, *names: str) -> User:
    user.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in names))
    return user


def events(approval: Approval) -> list[str]:
    return list(AuditEvent.objects.filter(chain=f"approval:{approval.pk}").order_by("n").values_list("type", flat=True))


def gate_answer(approval: Approval) -> Any:
    gate = Gate.objects.get(run=approval.run_id, turn=approval.turn, key=approval.key)
    place = bodies.answer_place(gate.run_id, gate.turn, gate.key, gate.kind)
    return None if gate.answer is None else bodies.opened(gate.answer, place, what="answer")


def run_status(approval: Approval) -> str:
    return RunHead.objects.values_list("status", flat=True).get(run=approval.run_id)


HOLD = timedelta(seconds=10)
