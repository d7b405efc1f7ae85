"""The sweeper: finds what is ready, due or abandoned, and moves it on. Safe to run twice at once, and to die half-way.

Every move is one conditional update of one run; nothing here touches a parked run that is not due.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from checkpoints import codec
from runs.bodies import answer_place, seal
from runs.dispatch import ring_now
from runs.engine.build import build
from runs.engine.workflows import supported_columns, supported_pairs
from runs.hooks import hooks
from runs.services.answering import wake, wake_if_answered
from runs.services.locking import lock_run
from runs.states import GateKind, RunStatus, SuspendReason

log = logging.getLogger(__name__)

BATCH = 200
LOOKED_AT = 50_000  # runs, at most, in one search for stranded ones
LIVE_SECONDS = 60  # a build not seen for so long is gone

# Ready runs whose doorbell was never rung, or rang long enough ago without anybody coming: 2 s, 5 s, … 60 s.
UNHEARD = """
    UPDATE runs_head SET rung_at = fermata_now(), rings = LEAST(rings + 1, 100)
    WHERE run_id IN (
        SELECT h.run_id FROM runs_head h JOIN runs_run r ON r.id = h.run_id
        WHERE h.status = 'queued' AND r.resume_mode IN ('hosted', 'workflow')
          AND (h.wake_at IS NULL OR h.wake_at <= (SELECT fermata_now()))
          AND (h.workflow, h.schema) IN (SELECT * FROM unnest(%s::text[], %s::int[]))
          AND (h.rung_at IS NULL AND (h.rings = 0 OR h.updated_at < (SELECT fermata_now()) - interval '2 s')
               OR h.rung_at < (SELECT fermata_now()) - interval '1 s' * LEAST(2 + 3 * (h.rings - 1), 60))
        ORDER BY h.updated_at LIMIT %s FOR UPDATE OF h SKIP LOCKED
    )
    RETURNING run_id
"""
UNRUNG = """
    UPDATE runs_head SET rung_at = NULL, rings = GREATEST(rings - 1, 0)
    WHERE run_id = ANY(%s) AND status || '' = 'queued'
"""
# An external agent that let its claim run out may take its run up again; nothing is to be done about it here.
ABANDONED = """
    SELECT h.run_id FROM runs_head h JOIN runs_run r ON r.id = h.run_id
    WHERE h.status = 'running' AND h.lease < (SELECT fermata_now()) AND r.resume_mode IN ('hosted', 'workflow') LIMIT %s
"""
TAKE_BACK = """
    UPDATE runs_head
    SET status = 'queued', lease = NULL, crashes = crashes + (CASE WHEN draining THEN 0 ELSE 1 END), draining = false,
        rung_at = fermata_now(), rings = 1, updated_at = now()
    WHERE run_id = %s AND status = 'running' AND lease < (SELECT fermata_now())
    RETURNING crashes
"""
POISONED = """
    UPDATE runs_head
    SET status = 'failed', detail = '', updated_at = now()
    WHERE run_id = %s AND status || '' = 'queued'
"""
POISON_STORY = """
    UPDATE runs_run SET finished_at = fermata_now(), error_type = 'WorkerDied', error = %s WHERE id = %s
"""
DUE = """
    SELECT run_id FROM runs_head
    WHERE status = 'suspended' AND wake_at <= (SELECT fermata_now()) ORDER BY wake_at LIMIT %s
"""
TIMER_RANG = """
    UPDATE runs_gate SET answer = %s, answered_at = fermata_now()
    WHERE run_id = %s AND turn = %s AND kind = 'timer' AND answer IS NULL AND wake_at <= fermata_now()
"""
SEEN = """
    INSERT INTO runs_build AS b (name, supports, seen_at, since)
    SELECT %s, %s, at, at FROM fermata_now() AS at
    ON CONFLICT (name) DO UPDATE SET supports = EXCLUDED.supports, seen_at = EXCLUDED.seen_at,
        since = CASE WHEN b.seen_at > EXCLUDED.seen_at - %s * interval '1 s' THEN b.since ELSE EXCLUDED.since END
"""
# Nobody who is at work can take these: say so on the run instead of letting it wait unseen. Queues are looked at by
# their heads, hopping from one to the next; only an orphaned one is read.
ORPHANED = """
    WITH RECURSIVE queue AS (
        (SELECT workflow, schema FROM runs_head WHERE status = 'queued' ORDER BY workflow, schema LIMIT 1)
        UNION ALL
        SELECT next.workflow, next.schema FROM queue, LATERAL (
            SELECT workflow, schema FROM runs_head
            WHERE status = 'queued' AND (workflow, schema) > (queue.workflow, queue.schema)
            ORDER BY workflow, schema LIMIT 1
        ) AS next
    )
    UPDATE runs_head h
    SET status = 'blocked', detail = 'cannot rehydrate: no deployed code has workflow ' || h.workflow || ' schema '
        || h.schema, build = %s, updated_at = now()
    FROM runs_run r, queue
    WHERE h.status = 'queued' AND h.workflow = queue.workflow AND h.schema = queue.schema
      AND r.id = h.run_id AND r.resume_mode IN ('hosted', 'workflow')
      AND h.updated_at < (SELECT fermata_now()) - interval '10 s'
      AND NOT EXISTS (
        SELECT 1 FROM runs_build b
        WHERE b.seen_at > (SELECT fermata_now()) - %s * interval '1 s'
          AND queue.workflow || '/' || queue.schema = ANY (b.supports)
      )
    RETURNING h.run_id
"""
# Blocked by another build than this one, which has the workflow: the code changed, so try again. Not while that other
# build is at work and the newer one: what one of them unblocked the other would block again, for ever. A run that no
# build blocked (see `restoring`) waits for a person.
UNBLOCK = """
    UPDATE runs_head
    SET status = 'queued', detail = '', rung_at = NULL, rings = 0, updated_at = now()
    WHERE status = 'blocked' AND build NOT IN ('', %s)
      AND (workflow, schema) IN (SELECT * FROM unnest(%s::text[], %s::int[]))
      AND build NOT IN (
        SELECT newer.name FROM runs_build newer, runs_build this
        WHERE this.name = %s AND newer.since >= this.since
          AND newer.seen_at > (SELECT fermata_now()) - %s * interval '1 s'
      )
    RETURNING run_id
"""
RUNS = "SELECT reltuples FROM pg_class WHERE oid = 'runs_head'::regclass"
STRANDED = """
    SELECT h.run_id FROM runs_head h
    WHERE h.run_id BETWEEN %s AND %s AND h.status = 'suspended' AND h.reason IN ('approval', 'event', 'timer')
      AND h.updated_at < (SELECT fermata_now()) - interval '1 min'
      AND NOT EXISTS (SELECT 1 FROM runs_gate g WHERE g.run_id = h.run_id AND g.turn = h.turn AND g.answer IS NULL)
    LIMIT %s
"""


@dataclass(frozen=True)
class Swept:
    """How many runs a sweep moved."""

    rung: int
    taken_back: int
    woken: int
    unblocked: int
    blocked: int


def sweep() -> Swept:
    """One sweep over everything that is ready, due or abandoned."""
    say_alive()
    unblocked = _unblock()
    return Swept(
        rung=_ring_unheard(),
        taken_back=sum(_take_back(run_id) for run_id in _ids(ABANDONED)),
        woken=sum(_wake_due(run_id) for run_id in _ids(DUE)),
        unblocked=unblocked,
        blocked=_block_orphans(),
    )


def stranded() -> list[UUID]:
    """Runs that are suspended with nothing open. There should never be one: each is logged as an error, and woken.

    Where there are very many runs this looks at a share of them, at another one every minute.
    """
    with connection.cursor() as cursor:
        cursor.execute(RUNS)
        shares = max(1, math.ceil(cursor.fetchone()[0] / LOOKED_AT))
        cursor.execute(STRANDED, (*_share(int(time.time()) // 60, shares), BATCH))
        found = [row[0] for row in cursor.fetchall()]
    for run_id in found:
        log.error("run %s is suspended and waits for nothing; waking it", run_id)
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            wake_if_answered(cursor, lock_run(cursor, run_id))
    return found


def _share(number: int, shares: int) -> tuple[UUID, UUID]:
    """The first and the last id of one of as many shares, which are alike since ids are random."""
    part = number % shares
    return UUID(int=(part << 128) // shares), UUID(int=((part + 1 << 128) // shares) - 1)


def say_alive() -> None:
    """Tell the other builds what this one can run."""
    pairs = [f"{name}/{schema}" for name, schema in supported_pairs()]
    with connection.cursor() as cursor:
        cursor.execute(SEEN, (build(), pairs, LIVE_SECONDS))


def _ids(query: str) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(query, (BATCH,))
        return [row[0] for row in cursor.fetchall()]


def _ring_unheard() -> int:
    with connection.cursor() as cursor:
        cursor.execute(UNHEARD, (*supported_columns(), BATCH))
        found = [row[0] for row in cursor.fetchall()]
    for number, run_id in enumerate(found):
        if not ring_now(run_id):
            # The broker is away. A doorbell that nobody could hear must not lengthen the time to the next one.
            with connection.cursor() as cursor:
                cursor.execute(UNRUNG, (found[number:],))
            return number
    return len(found)


def _take_back(run_id: UUID) -> bool:
    """A worker died or was cut off: back to the queue, or, after too many deaths at one checkpoint, failed."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        cursor.execute(TAKE_BACK, (run_id,))
        row = cursor.fetchone()
        if row is None:
            return False
        log.warning("run %s: its worker's lease ran out in phase %s (%d crashes here)", run_id, run.phase, row[0])
        poisoned = row[0] >= settings.FERMATA_MAX_CRASHES
        if poisoned:
            story = f"its worker died {row[0]} times in phase {run.phase!r}, after checkpoint {run.head_seq}"
            cursor.execute(POISONED, (run_id,))
            cursor.execute(POISON_STORY, (story, run_id))
            hooks().run_ended(
                cursor,
                run_id=run_id,
                team_id=run.team_id,
                reason="the run failed",
                type="run.finished",
                actor="system",
                body={"status": RunStatus.FAILED.value, "error": story},
            )
    if not poisoned:
        ring_now(run_id)
    return True


def _wake_due(run_id: UUID) -> bool:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        if run.status != RunStatus.SUSPENDED:
            return False
        if run.reason == SuspendReason.SETTLING:
            wake(cursor, run)
            return True
        answer = seal(codec.encode(None, path="answer"), answer_place(run_id, run.turn, "", GateKind.TIMER))
        cursor.execute(TIMER_RANG, (answer, run_id, run.turn))
        if cursor.rowcount == 0:
            return False
        wake_if_answered(cursor, run)
        return True


def _unblock() -> int:
    with connection.cursor() as cursor:
        cursor.execute(UNBLOCK, (build(), *supported_columns(), build(), LIVE_SECONDS))
        return len(cursor.fetchall())


def _block_orphans() -> int:
    with connection.cursor() as cursor:
        cursor.execute(ORPHANED, (build(), LIVE_SECONDS))
        found = cursor.fetchall()
    for (run_id,) in found:
        log.error("run %s is blocked: no live build has its workflow", run_id)
    return len(found)
