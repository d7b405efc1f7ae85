"""What a turn recorded, and the prefix rule.

A turn is one execution of one phase, however often it is tried. Whatever an earlier try recorded must be met again,
with the same phase, tool and arguments, before anything new is done and before the phase ends: otherwise an effect
would be orphaned by a different branch. There is no rule about the code in between.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from checkpoints.errors import Unreadable
from runs.bodies import answer_place, outcome_place, unseal
from runs.engine.signals import Diverged, Unrehydratable

WARN_STEPS = 200
MAX_STEPS = 1_000
MAX_SUPERSEDES = 3

LOAD_STEPS = """
    SELECT key, ordinal, phase, tool, effect, args_hash, state, generation, grant_id, build, started_at, deadline_at,
           outcome
    FROM runs_step WHERE run_id = %s AND turn = %s
"""
LOAD_GATES = """
    SELECT key, ordinal, phase, kind, question_hash, generation, superseded, wake_at, answer, delivered_at
    FROM runs_gate WHERE run_id = %s AND turn = %s
"""


class AuthorError(Exception):
    """The workflow's code breaks a rule; the message says what to do instead."""


@dataclass(frozen=True)
class StepRecord:
    key: str
    ordinal: int
    phase: str
    tool: str
    effect: str
    args_hash: bytes
    state: str
    generation: int
    grant_id: UUID | None
    build: str
    started_at: datetime
    deadline_at: datetime | None
    outcome: bytes | None


@dataclass(frozen=True)
class GateRecord:
    key: str
    ordinal: int
    phase: str
    kind: str
    question_hash: bytes
    generation: int
    superseded: int
    wake_at: datetime | None
    answer: bytes | None
    delivered_at: datetime | None


class Turn:
    """The records of one turn, and which of them this try has met."""

    def __init__(self, number: int, phase: str, steps: list[StepRecord], gates: list[GateRecord]) -> None:
        self.number = number
        self.phase = phase
        self.steps = {step.key: step for step in steps}
        self.gates = {gate.key: gate for gate in gates}
        self._unmet: dict[str, str] = {
            **{f"step {s.key!r}": s.build for s in steps},
            **{f"gate {g.key!r}": "an earlier build" for g in gates},
        }
        self._used: set[str] = set()
        self._ordinal = max([-1, *(step.ordinal for step in steps), *(gate.ordinal for gate in gates)])

    @classmethod
    def load(cls, cursor: Any, *, run_id: UUID, number: int, phase: str) -> Turn:
        """Read what was recorded. Raises Unrehydratable."""
        steps = [StepRecord(*row) for row in cursor.execute(LOAD_STEPS, (run_id, number)).fetchall()]
        return cls(
            number,
            phase,
            [_opened_step(step, run_id, number) for step in steps],
            load_gates(cursor, run_id=run_id, number=number),
        )

    def next_ordinal(self) -> int:
        self._ordinal += 1
        return self._ordinal

    def use(self, key: object, *, what: str) -> None:
        """A key may be used once in a try. Raises AuthorError."""
        if not isinstance(key, str) or not 1 <= len(key) <= 150:
            raise AuthorError(f"{what}: a key is a text of 1 to 150 characters, not {key!r:.60}")
        if f"{what} {key}" in self._used:
            raise AuthorError(
                f"{what} {key!r} was already used in this phase; in a loop write each=..., "
                f"for example run.step({key!r}, ..., each=record_id)"
            )
        self._used.add(f"{what} {key}")
        if len(self._used) > MAX_STEPS:
            raise AuthorError(f"more than {MAX_STEPS} steps in one phase: end the phase and let it name itself again")

    def forget(self, key: str, *, what: str) -> None:
        """Let a key be used again: what it was used for did not come to pass."""
        self._used.discard(f"{what} {key}")

    @property
    def crowded(self) -> bool:
        """True once, when the turn reaches the number of steps worth a warning."""
        return len(self._used) == WARN_STEPS

    def meet_step(self, key: str, *, tool: str, args_hash: bytes) -> StepRecord | None:
        """The recorded step, if there is one. Raises Diverged where it was another call."""
        record = self.steps.get(key)
        if record is None:
            return None
        if (record.phase, record.tool) != (self.phase, tool):
            raise Diverged(
                f"code diverged at step {key!r}, recorded by build {record.build}: "
                f"it was {record.tool} in phase {record.phase}, now {tool} in {self.phase}"
            )
        if bytes(record.args_hash) != args_hash:
            raise Diverged(
                f"code diverged at step {key!r}, recorded by build {record.build}: {tool} is called with other "
                "arguments than before (take times from run.now() and random values from run.uuid(key))"
            )
        self._unmet.pop(f"step {key!r}", None)
        return record

    def meet_gate(self, key: str, *, kind: str) -> GateRecord | None:
        """The recorded gate, if there is one. Raises Diverged where it was of another kind or phase."""
        record = self.gates.get(key)
        if record is None:
            return None
        if (record.phase, record.kind) != (self.phase, kind):
            raise Diverged(
                f"code diverged at gate {key!r}: it was a gate for {record.kind} in phase {record.phase}, "
                f"now for {kind} in {self.phase}"
            )
        self._unmet.pop(f"gate {key!r}", None)
        return record

    def require_all_met(self, *, before: str) -> None:
        """The prefix rule. Raises Diverged naming the first record that this try did not meet."""
        if self._unmet:
            what, build = next(iter(self._unmet.items()))
            raise Diverged(f"code diverged before {before}: {what}, recorded by {build}, was not met again")

    def remember_step(self, record: StepRecord) -> None:
        self.steps[record.key] = record


def load_gates(cursor: Any, *, run_id: UUID, number: int) -> list[GateRecord]:
    """A turn's gates as they are now, with their answers unsealed. Raises Unrehydratable."""
    rows = cursor.execute(LOAD_GATES, (run_id, number)).fetchall()
    return [_opened_gate(GateRecord(*row), run_id, number) for row in rows]


def _opened_gate(gate: GateRecord, run_id: UUID, turn: int) -> GateRecord:
    if gate.answer is None:
        return gate
    try:
        return replace(gate, answer=unseal(gate.answer, answer_place(run_id, turn, gate.key, gate.kind), what="answer"))
    except Unreadable as error:
        raise Unrehydratable(f"what gate {gate.key!r} was answered: {error}") from error


def _opened_step(step: StepRecord, run_id: UUID, turn: int) -> StepRecord:
    if step.outcome is None:
        return step
    try:
        return replace(step, outcome=unseal(step.outcome, outcome_place(run_id, turn, step.key), what="outcome"))
    except Unreadable as error:
        raise Unrehydratable(f"what step {step.key!r} recorded: {error}") from error
