"""What ends with a run: it asks nothing more and may do nothing more, and the trail says so. Plain SQL.

Where nothing is open, all of it is part of the one statement that ends the run, behind its fence. The snapshot of that
statement is older than the lock that it takes. A grant made since is of an approval that it has seen open; a grant that
was changed since is asked again. For openings it is a rule: whoever but its own worker opens something for a run that
is running takes it from that worker in the same transaction.
"""

import secrets
from typing import Any
from uuid import UUID

from approvals import audit
from approvals.audit import EventType
from approvals.services.conclusion import conclude
from approvals.services.freshness import SYSTEM
from approvals.states import ApprovalStatus
from runs import strictjson
from runs.engine.composing import composed
from runs.hooks import Closing, Cursor

# `status || ''` and OFFSET 0, so that what is the run's is looked up: PostgreSQL would go through all that is open, or
# ready, in the database, once it has taken these for few.
OPEN = """
SELECT id FROM approvals_approval
WHERE run_id = %s AND status || '' IN ('pending', 'held') ORDER BY id FOR NO KEY UPDATE
"""
NOTHING_OPEN = """
NOT EXISTS (SELECT FROM approvals_approval WHERE run_id = runs_head.run_id AND status || '' IN ('pending', 'held'))
"""
VOID = """
UPDATE approvals_grant SET status = 'void'
WHERE approval_id = ANY (ARRAY(
        SELECT a.id
        FROM fence, LATERAL (SELECT id FROM approvals_approval WHERE run_id = fence.run_id OFFSET 0) AS a
    ))
    AND status || '' = 'ready'
RETURNING approval_id AS id, (SELECT team_id FROM approvals_approval WHERE id = approval_id)
"""
# Only the statement knows how many there are. Their salts come from one secret, which is kept nowhere.
VOIDED = """
SELECT 'approval:' || id, %s::text, %s::text, team_id, substr(sha256(%s::bytea || uuid_send(id)), 1, 16),
       '{"approval":"' || id || '",' || %s::text, %s::bigint
FROM voided
"""
ENDED = "SELECT %s::text, %s::text, %s::text, team_id, %s::bytea, %s::text, %s::bigint FROM ended"
SAY = audit.append_from(f"{VOIDED} UNION ALL {ENDED}")
SAID = "SELECT count(*) FROM said"


def close_for_run(
    cursor: Cursor, *, run_id: UUID, team_id: int, reason: str, type: EventType, actor: str, body: dict[str, Any]
) -> None:
    """Cancel what is open and void what is unspent, in the transaction that ends the run, under its lock.

    `type`, `actor` and `body` are the run's own last event.
    """
    cursor.execute(OPEN, (run_id,))
    for (approval_id,) in cursor.fetchall():
        conclude(
            cursor,
            approval_id=approval_id,
            outcome=ApprovalStatus.CANCELLED,
            actor=SYSTEM,
            message=reason,
            said_by=whose_words(type, actor),
        )
    end = closing(run_id=run_id, reason=reason, type=type, actor=actor, body=body)
    ended = ("ended", "SELECT %s::bigint AS team_id", (team_id,))
    cursor.execute(*composed("SELECT %s::uuid AS run_id", (run_id,), [ended, *end.ctes], end.result))


def closing(*, run_id: UUID, reason: str, type: EventType, actor: str, body: dict[str, Any]) -> Closing:
    """The same as part of the statement that ends the run, for where nothing is open."""
    said_by = whose_words(type, actor)
    rest = strictjson.dumps({"message": reason, "run": str(run_id)}).removeprefix("{")
    voided = (EventType.GRANT_VOIDED.value, SYSTEM, secrets.token_bytes(audit.SALT_BYTES), rest, said_by)
    text = strictjson.dumps({"run": str(run_id), **body})
    ended = (f"run:{run_id}", type.value, actor, secrets.token_bytes(audit.SALT_BYTES), text, said_by)
    return Closing(NOTHING_OPEN, [("voided", VOID, ()), ("said", SAY, (*voided, *ended))], SAID)


def whose_words(type: EventType, actor: str) -> int | None:
    """The person in whose words it is said why the run is over: whoever cancelled it."""
    return audit.person_of(actor) if type == EventType.RUN_CANCELLED else None
