"""The one statement that settles an approval, whoever asks for it: a vote, the clock, an agent, the engine.

Plain SQL on the caller's cursor (psycopg's or Django's), inside a transaction that holds the run's lock.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from approvals import audit
from approvals.audit import EventType
from approvals.states import GRANTING, ApprovalStatus
from runs.hooks import Cursor

# A settled decision is never rewritten: the update finds nothing once somebody else was first. The status so that no
# index of what is open fits: the approval is looked up by its id.
CONCLUDE = """
WITH settled AS (
    UPDATE approvals_approval
    SET status = %(outcome)s, settled_at = fermata_now(), held_until = NULL, claimed_by_id = NULL, claimed_until = NULL
    WHERE id = %(id)s AND status || '' IN ('pending', 'held')
    RETURNING id, team_id, run_id, turn, key, tool, revision, action, args, requirements, grant_life, settled_at
), decided AS (
    INSERT INTO approvals_decision (approval_id, outcome, revision, action, args, message, decided_by_id, policies, at)
    SELECT id, %(outcome)s, revision, action, args, %(message)s, %(by)s, requirements::json ->> 'policies', settled_at
    FROM settled
), granted AS (
    INSERT INTO approvals_grant (
        approval_id, status, action, args, expires_at, created_at, spent_key, outcome, observed
    )
    SELECT id, 'ready', action, args, settled_at + make_interval(secs => extract(epoch FROM grant_life)), settled_at,
        '', '', true
    FROM settled WHERE %(grants)s
)
SELECT team_id, run_id, turn, key, tool, revision, action, args, settled_at FROM settled
"""

EVENTS = {
    ApprovalStatus.EXPIRED: EventType.APPROVAL_EXPIRED,
    ApprovalStatus.CANCELLED: EventType.APPROVAL_CANCELLED,
    ApprovalStatus.SUPERSEDED: EventType.APPROVAL_SUPERSEDED,
}


@dataclass(frozen=True)
class Concluded:
    """What was settled: the approval's gate and its final action."""

    approval_id: UUID
    team_id: int
    run_id: UUID
    turn: int
    key: str
    tool: str
    revision: int
    action: str
    args: str
    at: datetime


def conclude(
    cursor: Cursor,
    *,
    approval_id: UUID,
    outcome: ApprovalStatus,
    actor: str,
    message: str = "",
    decided_by: int | None = None,
    grants: bool | None = None,
    said_by: int | None = None,
) -> Concluded | None:
    """Settle an open approval: its status, its decision, its grant if it has one, its event. None: it was not open.

    `decided_by` is a person's id, None for the clock, an agent or the engine; `actor` as in the audit trail. `grants`
    is False for a question about the past, whose answer permits nothing. `said_by` is the person whose words `message`
    is in, if it is neither of those two.
    """
    granting = outcome in GRANTING if grants is None else grants
    cursor.execute(
        CONCLUDE,
        {"id": approval_id, "outcome": outcome.value, "message": message, "by": decided_by, "grants": granting},
    )
    row = cursor.fetchone()
    if row is None:
        return None
    settled = Concluded(approval_id, *row)
    audit.append(
        cursor,
        chain=f"approval:{approval_id}",
        type=EVENTS.get(outcome, EventType.APPROVAL_SETTLED),
        actor=actor,
        team_id=settled.team_id,
        person_id=said_by or decided_by or audit.person_of(actor),
        body={
            "approval": str(approval_id),
            "run": str(settled.run_id),
            "tool": settled.tool,
            "outcome": outcome.value,
            "revision": settled.revision,
            "action": settled.action,
            "args": settled.args,
            "message": message,
            "person": decided_by,
        },
    )
    return settled
