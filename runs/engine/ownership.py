"""A worker's ownership of a run, and every statement that needs it.

Each statement is fenced: it starts from the run's head at this worker's `epoch`, under `FOR NO KEY UPDATE` or as an
`UPDATE … RETURNING`, and all that it writes selects from that row. No row: the run is lost and nothing was written.

A lost connection leaves open whether the last statement committed. `refence` raises the epoch, which tells what
committed and makes anything still in flight a stale write; then the work is simply done again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from django.conf import settings

from checkpoints.store import Prepared
from runs.bodies import outcome_place, seal
from runs.engine.composing import COUNT, Ctes, Params, composed
from runs.engine.connection import LOST, EngineConnection, Sent, reconnect
from runs.engine.failpoints import failpoint
from runs.engine.riders import Riders
from runs.engine.signals import LostRun
from runs.engine.statements import (
    EVIDENCE,
    HELD,
    HELD_OR_LATE,
    LEAVE,
    RECORD_INTENT,
    RECORD_OUTCOME,
    REFENCE,
    SAVE_CHECKPOINT,
    Intent,
)
from runs.engine.wording import storable
from runs.hooks import Cursor

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass
class UnderWay:
    """A checkpoint that nothing has waited for yet, and how to send it; `sent` is None while that is to be done."""

    seq: int
    send: Callable[[], Sent]
    sent: Sent | None = None


class Ownership:
    """One worker's hold on one run at one epoch; `epoch` and `head_seq` follow what has committed."""

    def __init__(
        self,
        *,
        connection: EngineConnection,
        run_id: UUID,
        epoch: int,
        head_seq: int,
        build: str,
        failures: int = 0,
    ) -> None:
        self.connection = connection
        self.run_id = run_id
        self.epoch = epoch
        self.head_seq = head_seq
        self.build = build
        self.failures = failures  # tries from this checkpoint that came to nothing
        self.lease = timedelta(seconds=settings.FERMATA_LEASE_SECONDS)
        self.lost = False
        self.call_ends: float | None = None  # CLOCK_BOOTTIME after which the heartbeat lets go of a stuck call
        self.riders = Riders()
        self._deferred: Callable[[], None] | None = None
        self._under_way: deque[UnderWay] = deque()

    # --- boundaries between phases that are not saved at once ------------------------------------------------

    def defer(self, save: Callable[[], None]) -> None:
        """Let `save` save the boundary that was reached, once something depends on it; the one before is skipped.

        What was read before it needs no record: whoever has to start before the boundary reads again.
        """
        self._deferred = save
        self.riders.clear()

    def anchor(self) -> None:
        """Wait until the boundary at which the current turn began is saved; have it saved, if that was deferred.

        Nothing may be recorded in a turn that no checkpoint leads to: it would be orphaned by a crash.
        """
        save, self._deferred = self._deferred, None
        if save is not None:
            save()
        self._arrive()

    def _arrive(self, *, but: int = 0) -> None:
        """Wait for the checkpoints that are under way, all `but` the last ones.

        Raises LostRun; whatever else it raises, it raises again.
        """
        while len(self._under_way) > but:
            first = self._under_way[0]
            if not self.durably(partial(self._arrived, first)):
                raise self.lose()
            self._under_way.popleft()

    def _arrived(self, checkpoint: UnderWay) -> bool:
        if self.head_seq >= checkpoint.seq:
            return True  # it had committed before the connection was lost
        self._send_all()
        sent, checkpoint.sent = checkpoint.sent, None
        row = sent.row() if sent else None
        failpoint("checkpoint.after")
        if not (row and row[0]):
            return False
        self.head_seq = checkpoint.seq
        return True

    def _send_all(self) -> None:
        """Send what is not sent, in their order, and again what was sent behind it: that found no head to follow."""
        behind = False
        for checkpoint in self._under_way:
            behind = behind or checkpoint.sent is None
            if behind:
                checkpoint.sent = checkpoint.send()

    # --- what a phase writes ---------------------------------------------------------------------------------

    def record_reads(self, *, turn: int, phase: str) -> None:
        """Make the waiting read outcomes durable on their own."""
        if not self.riders.reads:
            return
        self.anchor()

        def write() -> bool:
            row = self._fenced(HELD, self._with_riders([], turn, phase)).fetchone()
            return bool(row and row[0])

        if not self.durably(write):
            raise self.lose()
        self.riders.clear()

    def record_intent(self, intent: Intent, *, spend: Callable[[Cursor], None] | None = None) -> datetime:
        """Commit the intent (with the grant's spending, in one transaction); returns when it was first started."""
        result = "SELECT started_at FROM intent"
        self.anchor()

        def write() -> datetime | None:
            failpoint("intent.before")
            ctes: Ctes = [("intent", RECORD_INTENT, self._intent_params(intent))]
            ctes = self._with_riders(ctes, intent.turn, intent.phase)
            if spend is None:
                row = self._fenced(HELD, ctes, result).fetchone()
            else:
                with self.held() as cursor:
                    spend(cursor)
                    self._within(cursor, ctes, result)
                    row = cursor.fetchone()
            failpoint("intent.after")
            return row[0] if row else None

        started = self.durably(write)
        if started is None:
            raise self.lose()
        self.riders.clear()
        return started

    def record_outcome(
        self,
        *,
        turn: int,
        key: str,
        state: str,
        outcome: bytes,
        then: Callable[[Cursor], None] | None = None,
    ) -> None:
        """Commit what a call came to. If the run was lost meanwhile, the receipt is kept as evidence: LostRun."""
        body = seal(outcome, outcome_place(self.run_id, turn, key))
        ctes: Ctes = [("done", RECORD_OUTCOME, (state, body, turn, key))]

        def write() -> bool:
            failpoint("outcome.before")
            if then is None:
                row = self._fenced(HELD_OR_LATE, ctes).fetchone()
                held = bool(row and row[0])
            else:
                with self.connection.transaction() as cursor:
                    cursor.execute(HELD_OR_LATE, (self.run_id, self.epoch))
                    held = cursor.fetchone() is not None
                    if held:
                        self._within(cursor, ctes, "SELECT 1")
                        then(cursor)
            failpoint("outcome.after")
            return held

        try:
            if self.durably(write):
                return
        except LostRun:
            pass
        if reconnect(self.connection, give_up_after=settings.FERMATA_LEASE_SECONDS):
            self.connection.execute(EVIDENCE, (self.run_id, turn, key, self.epoch, body))
        else:
            log.error("run %s: the database stayed away; the receipt of step %s is lost", self.run_id, key)
        raise self.lose()

    def save_checkpoint(
        self, prepared: Prepared, *, turn: int, phase: str, schema: int, left_phase: str | None
    ) -> None:
        """Send one autocommit statement: the fence, the head, the snapshot, its history, the waiting reads.

        Nothing waits for its end until something depends on it (see `anchor`), but for that of the one before it, which
        the server ends before it begins this one. `turn` and `phase` come next; the reads belong to the turn before, in
        `left_phase`. Without one they are newer than this checkpoint, and wait on.
        """
        if self._deferred is not None:  # passed over now, so that no checkpoint leads to the turn that read these
            self._deferred = None
            self.riders.clear()
        before = self._under_way[-1].seq if self._under_way else self.head_seq
        ctes = self.checkpoint_ctes(prepared, turn=turn - 1, phase=left_phase)

        def send() -> Sent:
            failpoint("checkpoint.before")
            fence = (before + 1, turn, phase, schema, self.build, self.lease, self.run_id, self.epoch, before)
            return self.connection.send(*composed(SAVE_CHECKPOINT, fence, ctes))

        self._under_way.append(UnderWay(before + 1, send))
        self.failures = 0
        if left_phase is not None:
            self.riders.clear()
        try:
            self._send_all()
        except LOST:
            self.refence()
        self._arrive(but=1)

    def leave(
        self, *, status: str, reason: str = "", detail: str = "", wake_at: datetime | None = None, failures: int = 0
    ) -> None:
        """Give the run up: back to the queue, parked on a timer, or blocked."""
        self.anchor()

        def write() -> bool:
            failpoint("release.before")
            row = self.connection.execute(
                LEAVE, self._leave_params(status, reason, detail, wake_at, failures)
            ).fetchone()
            failpoint("release.after")
            return row is not None

        if not self.durably(write):
            raise self.lose()

    def leave_within(
        self, cursor: Cursor, *, status: str, reason: str = "", detail: str = "", wake_at: datetime | None = None
    ) -> None:
        """`leave`, as part of a transaction that `held` began."""
        cursor.execute(LEAVE, self._leave_params(status, reason, detail, wake_at, 0))

    @contextmanager
    def held(self) -> Iterator[Cursor]:
        """A transaction that begins with the run's lock at this epoch. Raises LostRun where that finds no row."""
        self.anchor()
        with self.connection.transaction() as cursor:
            cursor.execute(HELD, (self.run_id, self.epoch))
            if cursor.fetchone() is None:
                raise self.lose()
            yield cursor

    def durably(self, work: Callable[[], T]) -> T:
        """Do `work`, again after each lost connection, as long as the run stays ours."""
        while True:
            try:
                return work()
            except LOST:
                self.refence()

    def refence(self) -> None:
        """After a lost connection: find out what committed and fence off what may be in flight."""
        if not reconnect(self.connection, give_up_after=settings.FERMATA_LEASE_SECONDS):
            raise self.lose()
        try:
            row = self.connection.execute(REFENCE, (self.lease, self.run_id, self.epoch)).fetchone()
        except LOST:
            row = None
        if row is None:
            raise self.lose()
        self.epoch, self.head_seq = row
        for checkpoint in self._under_way:
            checkpoint.sent = None

    # --- composing -------------------------------------------------------------------------------------------

    def write_riders(self, cursor: Cursor, *, turn: int, phase: str) -> None:
        """What waits for a durable statement, inside a transaction that `held` began."""
        if self.riders:
            self._within(cursor, self._with_riders([], turn, phase), "SELECT 1")

    def checkpoint_ctes(self, prepared: Prepared, *, turn: int, phase: str | None) -> Ctes:
        """A checkpoint, with what waits in the turn and phase that it ends. `phase` None: it is newer, and waits on."""
        ctes = prepared.ctes("fence")
        return ctes if phase is None else self._with_riders(ctes, turn, phase)

    def fenced_within(self, cursor: Cursor, fence: str, params: Params, ctes: Ctes, result: str) -> Any:
        """The row of a transaction's first statement, which takes the run's lock by its fence. Raises LostRun."""
        cursor.execute(*composed(fence, params, ctes, result))
        row = cursor.fetchone()
        if row is None:
            raise self.lose()
        return row

    def lose(self) -> LostRun:
        """Note that the run is lost; the caller raises what this returns."""
        self.lost = True
        return LostRun()

    def _with_riders(self, ctes: Ctes, turn: int, phase: str) -> Ctes:
        riders = self.riders.ctes(run_id=self.run_id, epoch=self.epoch, build=self.build, turn=turn, phase=phase)
        return [*riders, *ctes]

    def _intent_params(self, intent: Intent) -> tuple[Any, ...]:
        return (
            intent.turn,
            intent.key,
            intent.ordinal,
            intent.phase,
            intent.tool,
            intent.effect,
            intent.args_hash,
            intent.generation,
            intent.grant_id,
            self.epoch,
            self.build,
            intent.deadline,
        )

    def _leave_params(
        self, status: str, reason: str, detail: str, wake_at: datetime | None, failures: int
    ) -> tuple[Any, ...]:
        return (status, reason, storable(detail), wake_at, failures, self.build, self.run_id, self.epoch)

    def _fenced(self, fence: str, ctes: Ctes, result: str = COUNT) -> psycopg.Cursor[Any]:
        return self.connection.execute(*composed(fence, (self.run_id, self.epoch), ctes, result))

    def _within(self, cursor: Cursor, ctes: Ctes, result: str) -> None:
        """Run `ctes` in a transaction that already holds the run's lock."""
        cursor.execute(*composed("SELECT %s::uuid AS run_id", (self.run_id,), ctes, result))
