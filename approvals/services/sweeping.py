"""The sweeper: settles holds that are over, passes deadlines, lapses grants, frees claims.

One transaction for each run, skipping runs that somebody else holds: they are found again two seconds later. Deadlines
are judged again at every vote and spend, so nothing is wrong while no sweeper runs; it only waits.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

from django.db import DatabaseError, connection, transaction

from approvals import audit
from approvals.audit import EventType
from approvals.errors import ApprovalError
from approvals.services.automatic import apply_rule
from approvals.services.case import take
from approvals.services.freshness import SYSTEM
from approvals.services.settling import settle_case
from runs.errors import RunError
from runs.hooks import Cursor

log = logging.getLogger(__name__)

BATCH = 200

DUE = """
(SELECT run_id, id FROM approvals_approval
 WHERE status = 'held' AND held_until <= (SELECT fermata_now()) ORDER BY held_until LIMIT %(batch)s)
UNION ALL
(SELECT run_id, id FROM approvals_approval
 WHERE status = 'pending' AND expires_at <= (SELECT fermata_now()) ORDER BY expires_at LIMIT %(batch)s)
"""
LAPSING = """
SELECT a.run_id, g.approval_id FROM approvals_grant g JOIN approvals_approval a ON a.id = g.approval_id
WHERE g.status = 'ready' AND g.expires_at <= (SELECT fermata_now()) ORDER BY g.expires_at LIMIT %(batch)s
"""
FOR_A_RULE = """
SELECT run_id, id FROM approvals_approval
WHERE status = 'pending' AND automatic_id IS NOT NULL ORDER BY created_at LIMIT %(batch)s
"""
TRY_LOCK_RUN = "SELECT 1 FROM runs_head WHERE run_id = %s FOR NO KEY UPDATE SKIP LOCKED"
LAPSE = """
UPDATE approvals_grant g SET status = 'lapsed' FROM approvals_approval a
WHERE g.approval_id = %s AND a.id = g.approval_id AND g.status || '' = 'ready' AND g.expires_at <= fermata_now()
RETURNING a.team_id
"""
FREE_CLAIMS = """
UPDATE approvals_approval SET claimed_by_id = NULL, claimed_until = NULL
WHERE id IN (
    SELECT id FROM approvals_approval
    WHERE claimed_until <= (SELECT fermata_now()) ORDER BY claimed_until LIMIT %(batch)s FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING id, team_id
"""


@dataclass(frozen=True)
class Swept:
    """How many approvals a rule approved, how many were due, how many grants lapsed, how many claims were freed."""

    ruled: int
    due: int
    lapsed: int
    freed: int


def sweep() -> Swept:
    """One sweep. Safe to run twice at once, and to die half-way."""
    return Swept(
        ruled=sum(apply_rule(approval_id=approval) for _, approvals in _by_run(FOR_A_RULE) for approval in approvals),
        due=sum(_settle_due(run_id, approvals) for run_id, approvals in _by_run(DUE)),
        lapsed=sum(_lapse(run_id, approvals) for run_id, approvals in _by_run(LAPSING)),
        freed=_free_claims(),
    )


def _by_run(query: str) -> Iterable[tuple[UUID, list[UUID]]]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"batch": BATCH})
        rows = sorted(cursor.fetchall())
    return [(run_id, [approval for _, approval in group]) for run_id, group in groupby(rows, key=itemgetter(0))]


def _settle_due(run_id: UUID, approvals: list[UUID]) -> int:
    try:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            if not _held(cursor, run_id):
                return 0
            for approval_id in approvals:
                settle_case(take(cursor, approval_id=approval_id, run_id=run_id))
    except (DatabaseError, ApprovalError, RunError):
        log.exception("the due approvals of run %s were left as they are", run_id)
        return 0
    return len(approvals)


def _lapse(run_id: UUID, approvals: list[UUID]) -> int:
    lapsed = 0
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        if not _held(cursor, run_id):
            return 0
        for approval_id in approvals:
            cursor.execute(LAPSE, (approval_id,))
            row = cursor.fetchone()
            if row is not None:
                lapsed += 1
                _record(cursor, EventType.GRANT_LAPSED, approval_id, team_id=row[0])
    return lapsed


def _free_claims() -> int:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(FREE_CLAIMS, {"batch": BATCH})
        freed = sorted(cursor.fetchall())
        for approval_id, team_id in freed:
            _record(cursor, EventType.APPROVAL_RELEASED, approval_id, team_id=team_id)
    return len(freed)


def _held(cursor: Cursor, run_id: UUID) -> bool:
    """Take the run's lock, unless somebody else has it."""
    cursor.execute(TRY_LOCK_RUN, (run_id,))
    return cursor.fetchone() is not None


def _record(cursor: Cursor, event: EventType, approval_id: UUID, *, team_id: int) -> None:
    audit.append(
        cursor,
        chain=f"approval:{approval_id}",
        type=event,
        actor=SYSTEM,
        team_id=team_id,
        body={"approval": str(approval_id), "message": "its time was over"},
    )
