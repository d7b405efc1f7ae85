"""One slice of a run: claim it, rehydrate its snapshot, run its phases, and leave it in a state that goes on."""

from __future__ import annotations

import logging
import time
import traceback
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

from django.conf import settings

from checkpoints import codec
from checkpoints.models import Reason
from checkpoints.store import Head, Prepared, Snapshot, prepare
from runs.engine.build import build
from runs.engine.connection import LOST, EngineConnection, engine_connection
from runs.engine.context import Completion, History, RunContext
from runs.engine.draining import is_draining
from runs.engine.effects import Performer
from runs.engine.failpoints import failpoint
from runs.engine.finishing import Ending, block, finish
from runs.engine.gates import Draft, Gates, draft_of
from runs.engine.heartbeat import heartbeat
from runs.engine.ownership import Ownership
from runs.engine.rehydration import find_flow, load_saved, upcast
from runs.engine.signals import Diverged, LostRun, Parked, Unrehydratable
from runs.engine.turn import AuthorError, Turn
from runs.engine.workflows import Workflow, supported_columns
from runs.states import RunStatus

log = logging.getLogger(__name__)

# Values in selects of their own, which PostgreSQL does not estimate by: it plans each claim once.
CLAIM = """
    UPDATE runs_head h
    SET status = 'running', epoch = epoch + 1, lease = (SELECT fermata_now()) + %(lease)s, deliveries = deliveries + 1,
        worker = %(worker)s, detail = '', wake_at = NULL, rung_at = NULL, rings = 0, draining = false,
        updated_at = now()
    FROM runs_run r
    WHERE r.id = h.run_id AND h.run_id = {which}
    RETURNING h.run_id, epoch, head_seq, turn, phase, h.workflow, h.schema, failures, r.input
"""
# The status so that no index of what is queued fits: one run is looked up by its id.
ONE = """%(run)s
    AND h.status || '' = 'queued' AND (h.wake_at IS NULL OR h.wake_at <= (SELECT fermata_now()))
    AND (h.workflow, h.schema) IN (SELECT * FROM unnest((SELECT %(workflows)s::text[]), (SELECT %(schemas)s::int[])))
"""
# The head of each queue that this build takes from, and of those the oldest: whole queues are never read. Whoever else
# is claiming skips it: two workers that look at once take two runs. What it has locked is still so when it is updated.
OLDEST = """(
    SELECT oldest.run_id
    FROM unnest((SELECT %(workflows)s::text[]), (SELECT %(schemas)s::int[])) AS queue (workflow, schema), LATERAL (
        SELECT h.run_id, h.queued_at FROM runs_head h
        WHERE h.status = 'queued' AND h.workflow = queue.workflow AND h.schema = queue.schema
          AND (h.wake_at IS NULL OR h.wake_at <= (SELECT fermata_now()))
        ORDER BY h.queued_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
    ) AS oldest
    ORDER BY oldest.queued_at LIMIT 1
)"""
CLAIM_ONE, CLAIM_OLDEST = CLAIM.format(which=ONE), CLAIM.format(which=OLDEST)


@dataclass(frozen=True)
class Claim:
    """What the claim's statement returned."""

    run_id: UUID
    epoch: int
    head_seq: int
    turn: int
    phase: str
    workflow: str
    schema: int
    failures: int
    input: bytes


@dataclass
class Slice:
    """A run in the hands of this worker: `head`, `turn` and `phase` move on with each checkpoint."""

    own: Ownership
    flow: Workflow
    input: bytes  # decoded anew for each phase: a phase may change what it was handed
    snapshot: Snapshot
    head: Head
    entry_digest: bytes
    turn: int
    phase: str
    skipped: int = 0  # boundaries since the last checkpoint
    saved_at: float = field(default_factory=time.monotonic)


def execute(run_id: UUID, *, worker: str) -> bool:
    """Claim the run and go on with it until it ends, parks, or the slice is over. False: there was nothing to claim."""
    return _execute(CLAIM_ONE, worker=worker, run=run_id)


def execute_oldest(*, worker: str) -> bool:
    """`execute` the run that has waited longest of those that this build can take. False: none waits."""
    return _execute(CLAIM_OLDEST, worker=worker)


def _execute(statement: LiteralString, *, worker: str, **which: UUID) -> bool:
    connection = engine_connection()
    try:
        claim = _claim(connection, statement, worker=worker, **which)
    except LOST as error:
        # Not claimed, and the sweeper rings again; or claimed by nobody who knows, and the lease runs out.
        log.warning("the database went away during a claim: %s", error)
        return False
    if claim is None:
        return False
    own = Ownership(
        connection=connection,
        run_id=claim.run_id,
        epoch=claim.epoch,
        head_seq=claim.head_seq,
        build=build(),
        failures=claim.failures,
    )
    with heartbeat.watching(own), codec.keeping_secrets_out():
        try:
            _work(own, claim)
        except Parked:
            log.info("run %s parked", own.run_id)
        except LostRun:
            log.warning("run %s: another owner took it, or it was cancelled; nothing more is written", own.run_id)
    return True


def _claim(connection: EngineConnection, statement: LiteralString, *, worker: str, **which: UUID) -> Claim | None:
    failpoint("claim.before")
    workflows, schemas = supported_columns()
    lease = timedelta(seconds=settings.FERMATA_LEASE_SECONDS)
    params = {"lease": lease, "worker": worker, "workflows": workflows, "schemas": schemas, **which}
    row = connection.execute(statement, params).fetchone()
    failpoint("claim.after")
    return Claim(*row) if row else None


def _work(own: Ownership, claim: Claim) -> None:
    try:
        run = own.durably(lambda: _rehydrate(own, claim))
        _phases(run)
    except Diverged as signal:
        block(own, str(signal))
    except Unrehydratable as signal:
        block(own, f"cannot rehydrate: {signal}")
    except Exception as error:  # noqa: BLE001 - whatever a phase raises ends its run
        ending = Ending.failed(type(error).__qualname__, str(error), traceback.format_exc())
        log.error("run %s failed\n%s", own.run_id, ending.traceback)
        finish(own, ending)


def _rehydrate(own: Ownership, claim: Claim) -> Slice:
    flow = find_flow(workflow=claim.workflow, schema=claim.schema, phase=claim.phase)
    with own.connection.reading() as cursor:
        saved = load_saved(cursor, own.run_id, input=claim.input)
    failpoint("load.after")
    return Slice(
        own=own,
        flow=flow,
        input=saved.input,
        snapshot=upcast(flow, saved.snapshot),
        head=saved.head,
        entry_digest=saved.snapshot.digest,
        turn=claim.turn,
        phase=claim.phase,
    )


def _phases(run: Slice) -> None:
    """Run phases until one completes the run, one parks it (a signal), or the slice is over."""
    ends = time.monotonic() + settings.FERMATA_SLICE_SECONDS
    state, history = run.snapshot.state, History(run.snapshot.history or ())
    position, pending = run.snapshot.position, run.snapshot.pending
    turn = run.own.durably(
        lambda: Turn.load(run.own.connection, run_id=run.own.run_id, number=run.turn, phase=run.phase)
    )
    while True:
        context = _context(run, turn, state, history, position, pending)
        outcome = run.flow.phases[run.phase](run.flow.cls(), context)
        if context.latched is not None:  # the phase swallowed the signal
            raise context.latched
        turn.require_all_met(before="the end of the phase")
        if context.completed is not None or isinstance(outcome, Completion):
            _complete(run, context, outcome)
            return
        _go_on(run, context, _next_phase(run, outcome))
        if is_draining() or time.monotonic() > ends:
            run.own.leave(status=RunStatus.QUEUED.value)
            return
        state, position, pending = context.state, context.position, context.pending
        turn = Turn(run.turn, run.phase, [], [])  # nobody else can have recorded anything in it


def _context(
    run: Slice, turn: Turn, state: dict[str, Any], history: History, position: Any, pending: Any
) -> RunContext:
    context: RunContext

    def draft() -> Draft:
        return _draft(run, context)

    context = RunContext(
        run_id=run.own.run_id,
        workflow=run.flow.name,
        input=codec.decode(run.input),
        state=state,
        history=history,
        position=position,
        pending=pending,
        turn=turn,
        performer=Performer(own=run.own, turn=turn),
        gates=Gates(own=run.own, turn=turn, draft=draft),
    )
    return context


def _prepare(run: Slice, context: RunContext, phase: str, turn: int, reason: Reason) -> Prepared:
    return prepare(
        run_id=run.own.run_id,
        head=run.head,
        seq=run.head.seq + 1,
        epoch=run.own.epoch,
        workflow=run.flow.name,
        schema=run.flow.schema,
        phase=phase,
        turn=turn,
        reason=reason.value,
        state=context.state,
        new_history=context.history.added,
        position=context.position,
        pending=context.pending,
        limit=settings.FERMATA_SNAPSHOT_LIMIT,
    )


def _go_on(run: Slice, context: RunContext, phase: str) -> None:
    """Save the boundary before `phase`: now or, by the workflow's policy, once something depends on it."""
    turn, left = run.turn + 1, run.phase
    prepared = _prepare(run, context, phase, turn, Reason.PHASE)  # now: the next phase will change the state

    def save(left_phase: str | None) -> None:
        # First, as what goes wrong now may be about the one before: the next one follows this one in any case.
        context.history.mark_saved(prepared.head.history_length)
        run.head, run.entry_digest = prepared.head, prepared.digest
        run.skipped, run.saved_at = 0, time.monotonic()
        run.own.save_checkpoint(prepared, turn=turn, phase=phase, schema=run.flow.schema, left_phase=left_phase)

    if run.flow.checkpoint.is_due(phases=run.skipped + 1, seconds=time.monotonic() - run.saved_at):
        save(left)
    else:
        run.own.defer(lambda: save(None))
        run.skipped += 1
    run.turn, run.phase = turn, phase


def _draft(run: Slice, context: RunContext) -> Draft:
    """What differs from the phase's entry. Preparing a checkpoint that is never written finds it, and checks that the
    state could be saved."""
    prepared = _prepare(run, context, run.phase, run.turn, Reason.GATE)
    parts = prepared.head.manifest
    new = prepared.head.seq
    return draft_of(
        seq=run.head.seq,
        entry_digest=run.entry_digest,
        changed={
            "state": {
                name: value
                for name, value in context.state.items()
                if name not in parts or parts[name].introduced_seq == new
            },
            "removed": [name for name in run.head.manifest if name not in parts],
            "history": [codec.thaw(item) for item in context.history[context.history.saved :]],
            "position": context.position,
            "pending": context.pending,
        },
    )


def _next_phase(run: Slice, outcome: object) -> str:
    name = getattr(outcome, "__name__", None)
    owner = getattr(outcome, "__self__", None)
    if not isinstance(owner, run.flow.cls) or name not in run.flow.phases:
        raise AuthorError(
            f"phase {run.phase} returned {type(outcome).__name__}: end it with `return self.another_phase` or "
            "`return run.complete(result)`"
        )
    return str(name)


def _complete(run: Slice, context: RunContext, outcome: object) -> None:
    completed = context.completed
    if completed is None or outcome is not completed:
        raise AuthorError("return the value of this phase's own run.complete(...)")
    run.own.anchor()  # a boundary saved now has part of the history that would be the last checkpoint's
    finish(
        run.own,
        Ending.completed(completed.body),
        checkpoint=_prepare(run, context, run.phase, run.turn, Reason.END),
        turn=run.turn,
        phase=run.phase,
    )
