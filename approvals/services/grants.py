"""Grants: spending a permission once, saying what came of it, taking it back.

`spend` and `record_outcome` run inside the engine's transaction, which holds the run's lock: plain SQL on its cursor.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from approvals import audit, policies
from approvals.audit import EventType
from approvals.errors import GrantProblem, GrantTrouble, NotEligible
from approvals.models import Grant
from approvals.services.deciding import deciding, retry_deadlocks
from approvals.states import GrantStatus, Risk
from runs.hooks import Cursor
from runs.principals import AgentPrincipal, Principal
from runs.queries import may_operate

READ = """
SELECT g.status, g.action, g.args, g.expires_at, g.expires_at <= fermata_now(), g.spent_key, g.spent_at, g.outcome,
       a.team_id, a.run_id, a.agent_id, a.tool, a.risk
FROM approvals_grant g JOIN approvals_approval a ON a.id = g.approval_id
WHERE g.approval_id = %s
FOR NO KEY UPDATE OF g
"""
SPEND = """
UPDATE approvals_grant SET status = 'spent', spent_at = fermata_now(), spent_key = %s
WHERE approval_id = %s AND status || '' = 'ready'
"""
REPORT = """
UPDATE approvals_grant SET status = %s, outcome = %s, outcome_at = fermata_now(), observed = %s
WHERE approval_id = %s AND status IN ('spent', 'in_doubt')
"""

UNUSABLE: dict[str, GrantTrouble] = {
    GrantStatus.REVOKED: "revoked",
    GrantStatus.VOID: "void",
    GrantStatus.LAPSED: "grant_expired",
}


@dataclass(frozen=True)
class SpentGrant:
    """Permission, used now or (`replayed`) before with the same key. `args`: what to perform, canonical JSON text."""

    approval_id: UUID
    action: str
    args: str
    spent_key: str
    replayed: bool


@dataclass(frozen=True)
class _Locked:
    status: str
    action: str
    args: str
    expires_at: datetime
    over: bool
    spent_key: str
    spent_at: datetime | None
    outcome: str
    team_id: int
    run_id: UUID
    agent_id: UUID
    tool: str
    risk: str


def spend(cursor: Cursor, *, approval_id: UUID, action: str, spent_key: str) -> SpentGrant:
    """Spend the grant for `action` (hex digest) in the transaction that records the intent, which holds the run's lock.

    The same `spent_key` again gives the same answer. Raises `GrantProblem`: not_approved, digest_mismatch,
    already_consumed, grant_expired, revoked, void, denied (by a policy that was made since).
    """
    grant = _lock(cursor, approval_id)
    if grant.action != action:
        raise GrantProblem(approval_id, "digest_mismatch", {"action": grant.action})
    if grant.status in UNUSABLE:
        raise GrantProblem(approval_id, UNUSABLE[grant.status], {"expires_at": grant.expires_at})
    if grant.status != GrantStatus.READY:
        if grant.spent_key != spent_key:
            raise GrantProblem(approval_id, "already_consumed", {"spent_at": grant.spent_at})
        return SpentGrant(approval_id, grant.action, grant.args, spent_key, replayed=True)
    if grant.over:
        raise GrantProblem(approval_id, "grant_expired", {"expires_at": grant.expires_at})
    policy = policies.denied_by(
        cursor, team_id=grant.team_id, agent_id=grant.agent_id, tool=grant.tool, args=grant.args, risk=Risk(grant.risk)
    )
    if policy is not None:
        raise GrantProblem(approval_id, "denied", {"policy": policy})
    cursor.execute(SPEND, (spent_key, approval_id))
    _record(cursor, approval_id, grant, EventType.GRANT_SPENT, {"spent_key": spent_key})
    return SpentGrant(approval_id, grant.action, grant.args, spent_key, replayed=False)


def record_outcome(
    cursor: Cursor, *, approval_id: UUID, spent_key: str, succeeded: bool, outcome: str, observed: bool
) -> None:
    """Note what came of the call. `outcome` is JSON text; `observed` False: the agent says so, nobody here saw it.

    The same again changes nothing. Raises `GrantProblem`: not_approved, not_consumed, already_consumed (by another
    key), outcome_conflict.
    """
    grant = _lock(cursor, approval_id)
    status = GrantStatus.SUCCEEDED if succeeded else GrantStatus.FAILED
    if grant.status in (GrantStatus.SUCCEEDED, GrantStatus.FAILED):
        if (grant.spent_key, grant.status, grant.outcome) == (spent_key, status, outcome):
            return
        raise GrantProblem(approval_id, "outcome_conflict", {"status": grant.status})
    if grant.spent_at is None:
        raise GrantProblem(approval_id, "not_consumed", {"status": grant.status})
    if grant.spent_key != spent_key:
        raise GrantProblem(approval_id, "already_consumed", {"spent_at": grant.spent_at})
    cursor.execute(REPORT, (status.value, outcome, observed, approval_id))
    _record(
        cursor,
        approval_id,
        grant,
        EventType.GRANT_OUTCOME,
        {"outcome": status.value, "result": outcome, "observed": observed},
    )


@retry_deadlocks
def revoke(*, approval_id: UUID, by: Principal, reason: str) -> Grant:
    """Take an unspent grant back: an eligible reviewer or an operator. Revoking again changes nothing.

    Raises `NotVisible`, `NotEligible`, `GrantProblem`: not_approved, already_consumed, grant_expired, void.
    """
    with deciding(approval_id, by=by, attempt="revoke") as case:
        if isinstance(by, AgentPrincipal):
            raise NotEligible(approval_id, "An agent cannot revoke a grant; it can leave it unspent.")
        if not may_operate(by, case.approval.run) and (why := case.electorate([by.user.pk]).why_not(by.user.pk)):
            raise NotEligible(approval_id, why)
        grant = Grant.objects.select_for_update(no_key=True).filter(approval=approval_id).first()
        if grant is None:
            raise GrantProblem(approval_id, "not_approved", {})
        if grant.status in (GrantStatus.VOID, GrantStatus.LAPSED):
            raise GrantProblem(approval_id, UNUSABLE[grant.status], {"expires_at": grant.expires_at})
        if grant.spent_at is not None:
            raise GrantProblem(approval_id, "already_consumed", {"spent_at": grant.spent_at})
        if grant.status == GrantStatus.READY:
            grant.status = GrantStatus.REVOKED
            grant.save(update_fields=["status"])
            case.record(EventType.GRANT_REVOKED, by.actor, {"message": reason}, person_id=by.user.pk)
    return grant


def _lock(cursor: Cursor, approval_id: UUID) -> _Locked:
    cursor.execute(READ, (approval_id,))
    row = cursor.fetchone()
    if row is None:
        raise GrantProblem(approval_id, "not_approved", {})
    return _Locked(*row)


def _record(cursor: Cursor, approval_id: UUID, grant: _Locked, event: EventType, body: dict[str, Any]) -> None:
    audit.append(
        cursor,
        chain=f"approval:{approval_id}",
        type=event,
        actor=f"agent:{grant.agent_id}",
        team_id=grant.team_id,
        body={
            "approval": str(approval_id),
            "run": str(grant.run_id),
            "tool": grant.tool,
            "action": grant.action,
            "args": grant.args,
            **body,
        },
    )
