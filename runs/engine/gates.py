"""Gates: questions that a turn asks, and the parking of the run until they are answered.

Everything that makes the run sleep happens in one transaction under the run's lock: the gates, whatever the floor above
opens for them, the draft for its reviewers, and the wake condition's last look. An answer that came before is seen
there; one that comes after finds the run suspended and wakes it. Nothing falls between.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from checkpoints import codec
from runs.bodies import draft_place, seal
from runs.engine.failpoints import failpoint
from runs.engine.ownership import Ownership
from runs.engine.signals import Diverged, Parked
from runs.engine.turn import MAX_SUPERSEDES, AuthorError, GateRecord, Turn, load_gates
from runs.hooks import Cursor
from runs.states import GateKind, RunStatus, SuspendReason

OPEN_GATE = """
    INSERT INTO runs_gate (run_id, turn, key, ordinal, phase, kind, question_hash, generation, superseded, wake_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, 0, 0, %s)
"""
REOPEN_GATE = """
    UPDATE runs_gate
    SET question_hash = %s, generation = generation + 1, superseded = superseded + %s, answer = NULL,
        answered_at = NULL, delivered_at = NULL, opened_at = fermata_now()
    WHERE run_id = %s AND turn = %s AND key = %s
    RETURNING generation
"""
SAVE_DRAFT = """
    INSERT INTO runs_draft (run_id, seq, body) VALUES (%s, %s, %s)
    ON CONFLICT (run_id) DO UPDATE SET seq = EXCLUDED.seq, body = EXCLUDED.body
"""
COUNT_UNANSWERED = "SELECT count(*) FROM runs_gate WHERE run_id = %s AND turn = %s AND answer IS NULL"
TAKE_EARLY_EVENT = """
    UPDATE runs_gate SET answer = e.payload, answered_at = fermata_now()
    FROM runs_event e
    WHERE e.run_id = runs_gate.run_id AND e.name = runs_gate.key
      AND runs_gate.run_id = %s AND runs_gate.turn = %s AND runs_gate.key = %s
"""


@dataclass(frozen=True)
class Question:
    """What a gate asks. `digest` (32 bytes) tells whether the question is still the same when it is met again."""

    key: str
    digest: bytes


@dataclass(frozen=True)
class Opened:
    """A question that the floor above is to open, in the transaction whose cursor it gets."""

    key: str
    generation: int


class PrepareAgain(Exception):
    """What an opener was prepared by has changed since."""


class Opener(Protocol):
    """How the floor above opens its part of a gate."""

    def prepare(self, keys: Sequence[str]) -> None:
        """Everything that can be done before the transaction begins."""

    def open(self, cursor: Cursor, opened: Sequence[Opened], snapshot_digest: bytes) -> None:
        """Only inserts. `snapshot_digest` stands for what the reviewer is shown of the run.

        Raises `PrepareAgain`: then roll back, prepare, and try again.
        """


@dataclass(frozen=True)
class Draft:
    """What the state had become at the gate: only what differs from the phase's entry."""

    seq: int
    body: bytes
    digest: bytes


@dataclass(frozen=True)
class _EarlyEvents:
    """Answers a gate for an event that came before it."""

    run_id: UUID
    turn: int

    def prepare(self, keys: Sequence[str]) -> None:
        pass

    def open(self, cursor: Cursor, opened: Sequence[Opened], snapshot_digest: bytes) -> None:
        for gate in opened:
            cursor.execute(TAKE_EARLY_EVENT, (self.run_id, self.turn, gate.key))


class Gates:
    """The gates of one try of one turn."""

    def __init__(self, *, own: Ownership, turn: Turn, draft: Callable[[], Draft]) -> None:
        self.own = own
        self.turn = turn
        self._draft = draft

    def ask(self, questions: Sequence[Question], opener: Opener) -> dict[str, Any]:
        """Every question's answer, by key. Parks the run (raises Parked) while one is missing.

        A question that changed before its answer was delivered is asked again, under a new generation.
        """
        new: list[Question] = []
        changed: list[Question] = []
        for question in questions:
            record = self.turn.meet_gate(question.key, kind=GateKind.APPROVAL)
            if record is None:
                new.append(question)
            elif bytes(record.question_hash) != question.digest:
                changed.append(question)
                self._check_may_change(record)
        if new:
            self.turn.require_all_met(before=f"gate {new[0].key!r}")
        keys = [question.key for question in questions]
        if new or changed or any(self.turn.gates[key].answer is None for key in keys):
            self._park(
                keys, new, changed, opener=opener, reason=SuspendReason.APPROVAL, kind=GateKind.APPROVAL, wake_at=None
            )
        return self._deliver(keys)

    def reopen(self, question: Question, opener: Opener) -> dict[str, Any]:
        """Ask again although the gate was answered: its grant ran out unspent. Raises Parked, unless answered now."""
        self._park(
            [question.key],
            [],
            [question],
            opener=opener,
            reason=SuspendReason.APPROVAL,
            kind=GateKind.APPROVAL,
            wake_at=None,
            superseded=0,
        )
        return self._deliver([question.key])

    def sleep(self, key: str, until: datetime) -> None:
        """Park until a time. Met again, the time first named stands."""
        record = self.turn.meet_gate(key, kind=GateKind.TIMER)
        if record is None:
            self.turn.require_all_met(before=f"gate {key!r}")
        if record is None or record.answer is None:
            self._park(
                [key],
                [Question(key, bytes(32))] if record is None else [],
                [],
                opener=None,
                reason=SuspendReason.TIMER,
                kind=GateKind.TIMER,
                wake_at=record.wake_at if record else until,
            )
        self._deliver([key])

    def wait_for_event(self, name: str) -> Any:
        """The payload of an outside event, which may have come before."""
        record = self.turn.meet_gate(name, kind=GateKind.EVENT)
        if record is None:
            self.turn.require_all_met(before=f"event {name!r}")
        if record is None or record.answer is None:
            self._park(
                [name],
                [Question(name, bytes(32))] if record is None else [],
                [],
                opener=_EarlyEvents(self.own.run_id, self.turn.number),
                reason=SuspendReason.EVENT,
                kind=GateKind.EVENT,
                wake_at=None,
            )
        return self._deliver([name])[name]

    # --- inside ----------------------------------------------------------------------------------------------

    def _check_may_change(self, record: GateRecord) -> None:
        if record.delivered_at is not None:
            raise Diverged(
                f"code diverged at gate {record.key!r}: its answer was already used, and the code now proposes "
                "something else (take times from run.now() and random values from run.uuid(key))"
            )
        if record.superseded + 1 > MAX_SUPERSEDES:
            raise AuthorError(f"gate {record.key!r}: the proposal changes at every resume: put it in a step")

    def _park(
        self,
        keys: Sequence[str],
        new: Sequence[Question],
        changed: Sequence[Question],
        *,
        opener: Opener | None,
        reason: SuspendReason,
        kind: GateKind,
        wake_at: datetime | None,
        superseded: int = 1,
    ) -> None:
        """Open what is to be opened and park; returns only if by then every question has its answer."""
        self.own.anchor()
        draft = self._draft()

        def write() -> bool:
            failpoint("gate.before")
            with self.own.held() as cursor:
                self.own.write_riders(cursor, turn=self.turn.number, phase=self.turn.phase)
                opened = [self._open(cursor, question, kind, wake_at) for question in new]
                opened += [self._reopen(cursor, question, superseded) for question in changed]
                if opened:
                    body = seal(draft.body, draft_place(self.own.run_id, draft.seq))
                    cursor.execute(SAVE_DRAFT, (self.own.run_id, draft.seq, body))
                if opened and opener is not None:
                    opener.open(cursor, opened, draft.digest)
                cursor.execute(COUNT_UNANSWERED, (self.own.run_id, self.turn.number))
                parked: bool = cursor.fetchone()[0] > 0
                if parked:
                    self.own.leave_within(
                        cursor,
                        status=RunStatus.SUSPENDED.value,
                        reason=reason.value,
                        detail=f"waits at {', '.join(keys)}",
                        wake_at=wake_at,
                    )
            failpoint("gate.after")
            return parked

        while True:
            if opener is not None and (new or changed):
                opener.prepare([question.key for question in (*new, *changed)])
            try:
                parked = self.own.durably(write)
            except PrepareAgain:
                continue
            break
        if parked:
            raise Parked
        self.own.riders.clear()
        self._refresh()

    def _open(self, cursor: Cursor, question: Question, kind: GateKind, wake_at: datetime | None) -> Opened:
        place = (self.own.run_id, self.turn.number, question.key, self.turn.next_ordinal(), self.turn.phase)
        cursor.execute(OPEN_GATE, (*place, kind.value, question.digest, wake_at))
        return Opened(question.key, 0)

    def _reopen(self, cursor: Cursor, question: Question, superseded: int) -> Opened:
        where = (self.own.run_id, self.turn.number, question.key)
        cursor.execute(REOPEN_GATE, (question.digest, superseded, *where))
        return Opened(question.key, cursor.fetchone()[0])

    def _refresh(self) -> None:
        """See what was answered at once."""
        run_id, number = self.own.run_id, self.turn.number
        gates = self.own.durably(lambda: load_gates(self.own.connection, run_id=run_id, number=number))
        self.turn.gates.update((gate.key, gate) for gate in gates)

    def _deliver(self, keys: Sequence[str]) -> dict[str, Any]:
        """The answers; from here on they are what this turn goes by, and a changed question is a divergence."""
        fresh = [key for key in keys if self.turn.gates[key].delivered_at is None]
        self.own.riders.delivered.extend((self.turn.number, key) for key in fresh)
        return {key: codec.decode(bytes(self.turn.gates[key].answer or b"")) for key in keys}


def draft_of(*, seq: int, entry_digest: bytes, changed: Mapping[str, Any]) -> Draft:
    """The draft's body, and the digest that stands for the snapshot that a reviewer is shown."""
    body = codec.encode(dict(changed), path="draft")
    return Draft(seq=seq, body=body, digest=hashlib.sha256(b"fermata/draft/1" + entry_digest + body).digest())
