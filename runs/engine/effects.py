"""Performing a step: intent before the call, outcome at once after it, and what to do about a call in doubt."""

from __future__ import annotations

import hashlib
import logging
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from checkpoints import codec
from checkpoints.errors import CheckpointError, Unencodable, Unreadable
from runs.engine.connection import database_time
from runs.engine.failpoints import failpoint
from runs.engine.ownership import Ownership
from runs.engine.riders import ReadOutcome
from runs.engine.signals import Parked, Unrehydratable
from runs.engine.statements import Intent
from runs.engine.tools import (
    Happened,
    NotPerformed,
    StepFailed,
    Tool,
    decode_failure,
    encode_failure,
)
from runs.engine.turn import StepRecord, Turn
from runs.engine.wording import storable
from runs.hooks import Cursor, hooks
from runs.states import RunStatus, StepState, SuspendReason

log = logging.getLogger(__name__)

MARGIN = timedelta(seconds=5)  # between a call's deadline and the time from which it is certainly over
LONG_READ_SECONDS = 0.1
BACKOFF_CAP_SECONDS = 60


@dataclass(frozen=True)
class Permission:
    """What a gated call needs from the floor above: how to spend the grant, and where to report the outcome."""

    approval_id: UUID
    spend: Callable[[Cursor], None]
    report: Callable[[Cursor, bool, Any], None]


def boot_time() -> float:
    """Seconds since boot, suspension included: SIGSTOP and a sleeping laptop do not stop it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def step_key(run_id: UUID, turn: int, phase: str, key: str, tool: str, generation: int) -> str:
    """The idempotency key: the same for every try, epoch and worker; another only for a new generation."""
    text = "\x1f".join(("fermata/step/1", str(run_id), str(turn), phase, key, tool, str(generation)))
    return hashlib.sha256(text.encode()).hexdigest()


def _given_up(error: NotPerformed) -> StepFailed:
    return StepFailed(str(error), kind="not_performed", type_name="NotPerformed")


def _unsaveable(error: Exception) -> StepFailed:
    why = str(error) if isinstance(error, CheckpointError) else f"encoding it raised {type(error).__qualname__}"
    message = f"the call was made, and what it returned cannot be saved: {why}"
    return StepFailed(message, kind="unsaveable", type_name=type(error).__qualname__)


class Performer:
    """Runs the steps of one try of one turn."""

    def __init__(self, *, own: Ownership, turn: Turn) -> None:
        self.own = own
        self.turn = turn

    def perform(
        self, key: str, tool: Tool, arguments: Mapping[str, Any], *, permission: Permission | None = None
    ) -> Any:
        """The step's result: recorded, or from a call made now. Raises StepFailed, or a signal."""
        call = codec.roundtrip(dict(arguments), path=f"arguments of {key}")
        args_hash = codec.fingerprint(dict(arguments), path=f"arguments of {key}")
        record = self.turn.meet_step(key, tool=tool.name, args_hash=args_hash)
        if record is not None and record.state in (StepState.DONE, StepState.FAILED):
            return self._recorded(record)
        if tool.effect == "read":
            return self._read(key, tool, call, args_hash)
        if record is None:
            self.turn.require_all_met(before=f"step {key!r}")
        elif record.state == StepState.INTENT:
            settled = self._settle(record, tool, call, permission)
            if settled is not None:
                return settled.result
        generation = 0 if record is None else record.generation + (record.state == StepState.NOT_PERFORMED)
        return self._call(key, tool, call, args_hash, record, generation, permission)

    # --- reads -----------------------------------------------------------------------------------------------

    def _read(self, key: str, tool: Tool, call: dict[str, Any], args_hash: bytes) -> Any:
        began = time.monotonic()

        def keep(state: StepState, body: bytes) -> None:
            ordinal = self.turn.next_ordinal()
            self.own.riders.reads.append(ReadOutcome(key, ordinal, tool.name, args_hash, state.value, body))
            if time.monotonic() - began > LONG_READ_SECONDS:
                self.own.record_reads(turn=self.turn.number, phase=self.turn.phase)

        try:
            body, value = codec.saved(tool.call(call, idempotency_key=""), path=f"result of {key}")
        except StepFailed as failure:
            body = encode_failure(failure)
            keep(StepState.FAILED, body)
            raise decode_failure(body) from failure
        except NotPerformed as error:
            raise self.later(key, error) from error
        except Exception as error:
            # Nothing is recorded: an operator's retry reads again.
            kind = "unsaveable" if isinstance(error, Unencodable) else "error"
            raise StepFailed(str(error), kind=kind, type_name=type(error).__qualname__) from error
        keep(StepState.DONE, body)
        return value

    # --- effects ---------------------------------------------------------------------------------------------

    def _call(
        self,
        key: str,
        tool: Tool,
        call: dict[str, Any],
        args_hash: bytes,
        record: StepRecord | None,
        generation: int,
        permission: Permission | None,
    ) -> Any:
        intent = Intent(
            turn=self.turn.number,
            key=key,
            ordinal=record.ordinal if record else self.turn.next_ordinal(),
            phase=self.turn.phase,
            tool=tool.name,
            effect=tool.effect,
            args_hash=args_hash,
            generation=generation,
            grant_id=permission.approval_id if permission else None,
            deadline=tool.deadline + MARGIN,
        )
        idempotency_key = step_key(self.own.run_id, intent.turn, intent.phase, key, tool.name, generation)
        self._commit_intent(intent, permission)
        self.own.call_ends = boot_time() + tool.deadline.total_seconds()
        try:
            result = tool.call(call, idempotency_key=idempotency_key)
        except StepFailed as failure:
            raise self._failed(key, failure, permission) from failure
        except NotPerformed as error:
            if self._last_try:
                raise self._failed(key, _given_up(error), permission) from error
            self._not_performed(intent, str(error))
            raise self._try_later(key, str(error)) from error
        except Exception as error:
            raise self._unknown(intent, tool, call, error, permission) from error
        finally:
            self.own.call_ends = None
        failpoint("call.after")
        return self._performed(key, result, permission)

    def _commit_intent(self, intent: Intent, permission: Permission | None) -> None:
        """Commit the intent, and again as long as too much time went by between that and the call.

        A worker that was stopped here wakes up believing that it owns the run; the clock, read before the intent was
        sent, tells it otherwise. The gap between this check and the call's first byte cannot be closed.
        """
        window = settings.FERMATA_LEASE_SECONDS / 2
        while True:
            sent = boot_time()
            self.own.record_intent(intent, spend=permission.spend if permission else None)
            failpoint("call.before")
            if boot_time() - sent < window:
                return
            self.own.refence()

    def _performed(self, key: str, result: Any, permission: Permission | None) -> Any:
        """Record what a call returned. If that cannot be saved, the failure is known: the call must not be repeated."""
        try:
            body, value = codec.saved(result, path=f"result of {key}")
        except Exception as error:
            raise self._failed(key, _unsaveable(error), permission) from error
        self._outcome(key, StepState.DONE, body, permission, value)
        return value

    def _failed(self, key: str, failure: StepFailed, permission: Permission | None) -> StepFailed:
        """Record a known failure; returns it as it will be met again."""
        body = encode_failure(failure)
        known = decode_failure(body)
        self._outcome(key, StepState.FAILED, body, permission, known.message)
        return known

    def _outcome(self, key: str, state: StepState, body: bytes, permission: Permission | None, shown: Any) -> None:
        then = None
        if permission is not None:
            report, succeeded = permission.report, state == StepState.DONE

            def then(cursor: Cursor) -> None:
                report(cursor, succeeded, shown)

        self.own.record_outcome(turn=self.turn.number, key=key, state=state.value, outcome=body, then=then)

    def _not_performed(self, intent: Intent, why: str) -> None:
        body = codec.encode({"why": storable(why), "generation": intent.generation}, path="not performed")
        self.own.record_outcome(turn=intent.turn, key=intent.key, state=StepState.NOT_PERFORMED.value, outcome=body)

    # --- later, or in doubt ----------------------------------------------------------------------------------

    def later(self, key: str, error: NotPerformed) -> StepFailed | Parked:
        """What to raise where nothing was done and nothing is recorded: the run waits, or else the try was the last."""
        return _given_up(error) if self._last_try else self._try_later(key, str(error))

    @property
    def _last_try(self) -> bool:
        return self.own.failures + 1 >= settings.FERMATA_MAX_FAILURES

    def _try_later(self, key: str, why: str) -> Parked:
        """Queue the run, with a back-off that doubles at each try from the same checkpoint."""
        wake_at = self._now() + timedelta(seconds=min(2**self.own.failures, BACKOFF_CAP_SECONDS))
        self.own.leave(status=RunStatus.QUEUED.value, detail=f"trying {key} again: {why}", wake_at=wake_at, failures=1)
        return Parked()

    def _unknown(
        self,
        intent: Intent,
        tool: Tool,
        call: dict[str, Any],
        error: Exception,
        permission: Permission | None,
    ) -> Parked:
        """The call raised: its effect is unknown, and it may still arrive until its deadline.

        Keyed calls are sent again; probes ask after the deadline; about the others a person is asked.
        """
        story = storable("".join(traceback.format_exception(error)))
        log.warning("run %s: %s raised in step %s\n%s", self.own.run_id, tool.name, intent.key, story)
        if tool.effect == "keyed" and not self._last_try:
            return self._try_later(intent.key, f"{type(error).__name__}: {error}")
        now = self._now()
        over_at = now + intent.deadline
        if tool.probe is not None:
            return self._wait_until_over(tool, over_at)
        return self._ask(intent.key, tool, call, intent.generation, now, over_at, permission)

    def _wait_until_over(self, tool: Tool, over_at: datetime) -> Parked:
        self.own.leave(
            status=RunStatus.SUSPENDED.value,
            reason=SuspendReason.SETTLING.value,
            detail=f"{tool.name} may still be under way",
            wake_at=over_at,
        )
        return Parked()

    def _settle(
        self, record: StepRecord, tool: Tool, call: dict[str, Any], permission: Permission | None
    ) -> Happened | None:
        """A step in doubt, met again. None: make the call (again, under the same key). Else its result."""
        now = self._now()
        if tool.effect == "keyed" and tool.remembers is not None and now - record.started_at < tool.remembers:
            return None
        safe_at = record.deadline_at or now
        if now < safe_at:
            raise self._wait_until_over(tool, safe_at)
        if tool.probe is not None:
            key = step_key(self.own.run_id, self.turn.number, record.phase, record.key, record.tool, record.generation)
            answer = tool.probe(**call, idempotency_key=key)
            if not isinstance(answer, Happened):
                return None
            return Happened(self._performed(record.key, answer.result, permission))
        raise self._ask(record.key, tool, call, record.generation, record.started_at, safe_at, permission)

    def _ask(
        self,
        key: str,
        tool: Tool,
        call: dict[str, Any],
        generation: int,
        started_at: datetime,
        safe_at: datetime,
        permission: Permission | None,
    ) -> Parked:
        """Nobody but a human can tell whether the call happened: ask, and park."""

        def write() -> None:
            with self.own.held() as cursor:
                hooks().open_in_doubt(
                    cursor,
                    run_id=self.own.run_id,
                    turn=self.turn.number,
                    key=key,
                    tool=tool.name,
                    arguments=call,
                    generation=generation,
                    started_at=started_at,
                    safe_at=safe_at,
                    approval_id=permission.approval_id if permission else None,
                )
                self.own.leave_within(
                    cursor,
                    status=RunStatus.SUSPENDED.value,
                    reason=SuspendReason.IN_DOUBT.value,
                    detail=f"{tool.name} was started and its outcome is not known",
                )

        self.own.durably(write)
        return Parked()

    # --- values ----------------------------------------------------------------------------------------------

    def _recorded(self, record: StepRecord) -> Any:
        if record.outcome is None:
            raise AssertionError(f"step {record.key} is {record.state} without an outcome")
        body = bytes(record.outcome)
        try:
            if record.state == StepState.FAILED:
                raise decode_failure(body)
            return codec.decode(body)
        except Unreadable as error:
            raise Unrehydratable(f"what step {record.key!r} recorded: {error}") from error

    def _now(self) -> datetime:
        return self.own.durably(lambda: database_time(self.own.connection))
