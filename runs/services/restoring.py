"""After a backup was restored: nothing goes on until a person has looked.

What a run did after the backup is not in the database any more. Going on would do it again: that no effect is doubled
assumes that no commit was lost.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connection, transaction

from runs.hooks import hooks
from runs.services.locking import lock_run

BATCH = 500
WHY = "the database was restored from a backup: check what this run did since then, and retry or cancel it"

# Without a build: no deploy unblocks these, only a person's retry (see `sweeping.UNBLOCK`).
TO_BLOCK = """
    SELECT h.run_id FROM runs_head h JOIN runs_run r ON r.id = h.run_id
    WHERE (h.status IN ('queued', 'running', 'suspended') OR h.status = 'blocked' AND h.build <> '')
      AND r.resume_mode IN ('hosted', 'workflow') AND h.run_id > %s
    ORDER BY h.run_id LIMIT %s
"""
BLOCK = """
    UPDATE runs_head
    SET status = 'blocked', reason = '', lease = NULL, wake_at = NULL, draining = false, build = '',
        epoch = epoch + 1, updated_at = now(),
        detail = CASE WHEN status = 'blocked' THEN %s || '; it was blocked before: ' || detail ELSE %s END
    WHERE run_id = %s AND (status IN ('queued', 'running', 'suspended') OR status = 'blocked' AND build <> '')
"""


def block_unfinished() -> int:
    """Block every unfinished hosted run for review, whatever it was doing; how many. Again: none.

    Each in a transaction of its own. A worker that has one loses it and writes nothing more.
    """
    blocked, last = 0, UUID(int=0)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(TO_BLOCK, (last, BATCH))
            found = [row[0] for row in cursor.fetchall()]
        if not found:
            return blocked
        blocked += sum(_block(run_id) for run_id in found)
        last = found[-1]


def _block(run_id: UUID) -> bool:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        cursor.execute(BLOCK, (WHY, WHY, run_id))
        if cursor.rowcount != 1:
            return False  # it ended meanwhile
        hooks().record(
            cursor,
            run_id=run_id,
            team_id=run.team_id,
            type="run.blocked",
            actor="system",
            body={"status": run.status, "reason": WHY},
        )
    return True
