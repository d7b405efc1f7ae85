"""Taking a run to its end: answering what it asks, moving the clock, and killing one of its workers on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from approvals.models import Approval
from approvals.services.case import take
from approvals.states import ApprovalKind, ApprovalStatus
from fermata.certify.database import count_calls, move_clock, move_clock_to
from fermata.certify.processes import Workers
from fermata.certify.standins import Samples
from runs.engine.effects import step_key
from runs.engine.tools import find_tool
from runs.models import Agent, Gate, Run, RunHead, Step
from runs.services.answering import record_event, resolve_step
from runs.services.starting import start_run
from runs.services.sweeping import sweep
from runs.states import FINISHED, GateKind, RunStatus, SuspendReason

MAX_SLICES = 500
ACTOR = "system"
OVER = FINISHED | {RunStatus.BLOCKED}


@dataclass(frozen=True, order=True)
class Place:
    """A step in its phase, or the phase alone."""

    phase: str
    step: str = ""


@dataclass(frozen=True)
class Strike:
    """Kill the worker of slice `number` (from 0) at the `nth` passage of `failpoint`."""

    number: int
    failpoint: str
    nth: int


@dataclass
class Performance:
    """What became of one run. `slices`: the failpoints passed in each; `effects`: how often each step had its effect,
    as the other side counts; `resent`: steps that the other side saw more than once under one key."""

    status: str = ""
    detail: str = ""
    phase: str = ""
    slices: list[dict[str, int] | None] = field(default_factory=list)
    effects: Counter[tuple[int, Place]] = field(default_factory=Counter)
    resent: set[Place] = field(default_factory=set)
    asked: set[Place] = field(default_factory=set)


class Rehearsal:
    """Runs of one workflow with one input. `first` executes until it is struck, `other` goes on."""

    def __init__(
        self, *, agent: Agent, workflow: str, input: Any, samples: Samples, first: Workers, other: Workers
    ) -> None:
        self._agent = agent
        self._workflow = workflow
        self._input = input
        self._samples = samples
        self._first = first
        self._other = other

    def perform(self, strike: Strike | None = None) -> Performance:
        """Start a run and take it to where it ends or is blocked."""
        run = start_run(agent=self._agent, workflow=self._workflow, input=self._input)
        performance = Performance()
        workers = self._first
        while (head := RunHead.objects.get(run=run)).status not in OVER and len(performance.slices) < MAX_SLICES:
            if head.status != RunStatus.QUEUED:
                self._move_on(head, performance)
                continue
            if head.wake_at is not None:
                move_clock_to(head.wake_at)
            struck = strike is not None and strike.number == len(performance.slices)
            passed = workers.execute(run.id, f"{strike.failpoint}:kill:{strike.nth}" if strike and struck else "-")
            performance.slices.append(passed)
            workers = self._other if passed is None else workers
        self._look(run, head, performance)
        return performance

    # --- meanwhile -------------------------------------------------------------------------------------------

    def _move_on(self, head: RunHead, performance: Performance) -> None:
        if head.status == RunStatus.RUNNING:  # its worker died
            move_clock(timedelta(seconds=settings.FERMATA_LEASE_SECONDS + 1))
            sweep()
        elif head.reason == SuspendReason.APPROVAL:
            for approval in _pending(head, ApprovalKind.ACTION):
                _approve(approval)
        elif head.reason == SuspendReason.EVENT:
            for gate in Gate.objects.filter(run=head.run_id, turn=head.turn, kind=GateKind.EVENT, answer=None):
                record_event(run_id=head.run_id, name=gate.key, payload=self._samples.payload(gate.key))
        elif head.reason == SuspendReason.IN_DOUBT:
            for approval in _pending(head, ApprovalKind.IN_DOUBT):
                performance.asked.add(Place(head.phase, approval.key))
                self._say_what_happened(approval)
        elif head.wake_at is not None:
            move_clock_to(head.wake_at)
            sweep()

    def _say_what_happened(self, approval: Approval) -> None:
        """Answer as a person would who can look into the ledger."""
        step = Step.objects.get(run=approval.run_id, turn=approval.turn, key=approval.key)
        tool = find_tool(step.tool)
        if tool is None:
            raise AssertionError(f"{step.tool} was called a moment ago")
        happened = count_calls(_keys(step)).total() > 0
        outcome = self._samples.result(tool, json.loads(approval.args)) if happened else None
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            case = take(cursor, approval_id=approval.pk, run_id=approval.run_id)
            case.settle(ApprovalStatus.RESPONDED if happened else ApprovalStatus.APPROVED, actor=ACTOR)
            resolve_step(cursor, run_id=step.run_id, turn=step.turn, key=step.key, happened=happened, outcome=outcome)

    # --- afterwards ------------------------------------------------------------------------------------------

    def _look(self, run: Run, head: RunHead, performance: Performance) -> None:
        run.refresh_from_db()
        performance.status, performance.phase = head.status, head.phase
        performance.detail = head.detail or f"{run.error_type}: {run.error}".strip(": ")
        for step in Step.objects.filter(run=run).exclude(effect="read"):
            place = Place(step.phase, step.key)
            for calls in count_calls(_keys(step)).values():
                performance.effects[step.turn, place] += 1 if step.effect == "keyed" else calls
                if step.effect == "keyed" and calls > 1:
                    performance.resent.add(place)


def _pending(head: RunHead, kind: ApprovalKind) -> Iterator[Approval]:
    return Approval.objects.filter(run=head.run_id, kind=kind, status=ApprovalStatus.PENDING).iterator()


def _approve(approval: Approval) -> None:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        case = take(cursor, approval_id=approval.pk, run_id=approval.run_id)
        if case.approval.is_open:  # another one's answer may have closed it
            case.settle(ApprovalStatus.APPROVED, actor=ACTOR)


def _keys(step: Step) -> list[str]:
    """The idempotency keys that the step's calls have had, one for each generation."""
    return [
        step_key(step.run_id, step.turn, step.phase, step.key, step.tool, generation)
        for generation in range(step.generation + 1)
    ]
