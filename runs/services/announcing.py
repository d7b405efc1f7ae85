"""The outbox: what an agent is to be told is written in the transaction that makes it so, and sent after it."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from runs.dispatch import ring_post
from runs.hooks import Cursor
from runs.services.locking import LockedRun

RUN_READY = "run.ready"  # decided: the agent can take it up
RUN_CANCELLED = "run.cancelled"

TRIED_FOR = timedelta(days=7)

SUPERSEDE = """
    UPDATE runs_webhook_post SET state = 'superseded', settled_at = fermata_now()
    WHERE run_id = %s AND state = 'pending'
"""
WRITE = """
    INSERT INTO runs_webhook_post (
        id, agent_id, run_id, sequence, type, checkpoint, created_at, state, attempts, next_attempt_at, gives_up_at,
        last_error
    )
    SELECT %s, r.agent_id, r.id,
        COALESCE((SELECT max(sequence) FROM runs_webhook_post WHERE run_id = r.id), 0) + 1,
        %s, h.head_seq, now.at, 'pending', 0, now.at, now.at + %s, ''
    FROM runs_run r JOIN runs_head h ON h.run_id = r.id, (SELECT fermata_now() AS at) now
    WHERE r.id = %s
    RETURNING agent_id
"""


def announce(cursor: Cursor, run: LockedRun, event: str) -> None:
    """Write down that the run's agent is to be told `event`, under the run's lock. What it was not yet told before is
    not sent any more: it will ask what the run is now, and an older post must not come after a newer one."""
    cursor.execute(SUPERSEDE, (run.run_id,))
    cursor.execute(WRITE, (uuid4(), event, TRIED_FOR, run.run_id))
    ring_post(cursor.fetchone()[0])
