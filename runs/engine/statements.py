"""The engine's fenced statements, and the records that they write.

In each, `fence` is the run's head at the worker's epoch: nothing is written when it has no row. `runs.engine.ownership`
composes and runs them.

A run has a lease while it is running, and only then: the row's check says so. Its status is not asked for, or
PostgreSQL would look for the row among all that are running, once it has taken these for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

HELD = """
    SELECT run_id FROM runs_head
    WHERE run_id = %s AND epoch = %s AND lease > (SELECT fermata_now())
    FOR NO KEY UPDATE
"""

# A receipt is recorded even when the lease has run out, as long as nobody else has claimed the run.
HELD_OR_LATE = """
    SELECT run_id FROM runs_head WHERE run_id = %s AND epoch = %s AND lease IS NOT NULL FOR NO KEY UPDATE
"""

# A repeated call (a resend, or another try after NotPerformed) takes its own row up again.
RECORD_INTENT = """
    INSERT INTO runs_step (run_id, turn, key, ordinal, phase, tool, effect, args_hash, state, generation, grant_id,
                           epoch, build, started_at, deadline_at)
    SELECT fence.run_id, %s, %s, %s, %s, %s, %s, %s, 'intent', %s, %s, %s, %s, fermata_now(), fermata_now() + %s
    FROM fence
    ON CONFLICT (run_id, turn, key) DO UPDATE
        SET epoch = EXCLUDED.epoch, deadline_at = EXCLUDED.deadline_at, generation = EXCLUDED.generation,
            started_at = CASE WHEN runs_step.state = 'intent' AND runs_step.generation = EXCLUDED.generation
                              THEN runs_step.started_at ELSE EXCLUDED.started_at END,
            grant_id = EXCLUDED.grant_id, state = 'intent', outcome = NULL, finished_at = NULL
        WHERE runs_step.state IN ('intent', 'not_performed')
    RETURNING started_at
"""

RECORD_OUTCOME = """
    UPDATE runs_step SET state = %s, outcome = %s, finished_at = fermata_now()
    FROM fence
    WHERE runs_step.run_id = fence.run_id AND turn = %s AND key = %s AND state = 'intent'
    RETURNING 1
"""

SAVE_CHECKPOINT = """
    UPDATE runs_head
    SET head_seq = %s, turn = %s, phase = %s, schema = %s, crashes = 0, failures = 0, build = %s,
        lease = (SELECT fermata_now()) + %s, updated_at = now()
    WHERE run_id = %s AND epoch = %s AND head_seq = %s AND lease > (SELECT fermata_now())
    RETURNING run_id
"""

REFENCE = """
    UPDATE runs_head SET epoch = epoch + 1, lease = (SELECT fermata_now()) + %s
    WHERE run_id = %s AND epoch = %s AND lease IS NOT NULL
    RETURNING epoch, head_seq
"""

LEAVE = """
    UPDATE runs_head
    SET status = %s, reason = %s, detail = %s, lease = NULL, wake_at = %s, failures = failures + %s, draining = false,
        build = %s, rung_at = NULL, rings = 0, updated_at = now()
    WHERE run_id = %s AND epoch = %s AND lease IS NOT NULL
    RETURNING run_id
"""

EVIDENCE = "INSERT INTO runs_step_evidence (run_id, turn, key, epoch, outcome) VALUES (%s, %s, %s, %s, %s)"


@dataclass(frozen=True)
class Intent:
    """A call about to be made. `deadline`: how long after the statement it counts as over."""

    turn: int
    key: str
    ordinal: int
    phase: str
    tool: str
    effect: str
    args_hash: bytes
    generation: int
    grant_id: UUID | None
    deadline: timedelta
