"""Asking: opening approvals inside the transaction that parks the run. Plain SQL on whatever cursor that has.

`asking.prepare` reads policies and checks schemas before that transaction; here everything only inserts, after a look
at whether they are still what they were.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID, uuid4

from approvals import audit, digests
from approvals.audit import EventType
from approvals.services.asking import Ask, PreparedAsk, PreparedAsks, RunFacts, prepare
from approvals.services.case import gate_answer
from approvals.services.conclusion import conclude
from approvals.services.freshness import SYSTEM, denial
from approvals.services.premises import check_still_so
from approvals.states import ApprovalStatus
from runs.hooks import Cursor
from runs.services.answering import answer_gate

__all__ = ["Ask", "Opened", "PreparedAsks", "RunFacts", "open_approvals", "prepare"]

FIND_PROPOSAL = """
SELECT a.id, a.status, a.action, a.review, r.action, a.revision
FROM approvals_approval a JOIN approvals_revision r ON r.approval_id = a.id AND r.number = 1
WHERE a.run_id = %s AND a.turn = %s AND a.key = %s AND a.kind = 'action'
ORDER BY a.created_at DESC, a.id LIMIT 1
FOR NO KEY UPDATE OF a
"""
# In seconds: a "1 day" would be 23 or 25 hours when the session's time zone changes its clocks.
INSERT_APPROVAL = """
INSERT INTO approvals_approval (
    id, team_id, agent_id, run_id, kind, turn, key, generation, status, tool, tool_version, target, revision, args,
    action, review, snapshot_digest, title, description, risk, allowed, args_schema, asked, requirements, pools, wanted,
    grant_life, closes_others, created_at, expires_at, supersedes_id, automatic_id, voted_by
)
SELECT %(id)s, %(team)s, %(agent)s, %(run)s, 'action', %(turn)s, %(key)s, %(generation)s, 'pending', %(tool)s,
    %(tool_version)s, %(target)s, 1, %(args)s, %(action)s, %(review)s, %(snapshot)s, %(title)s, %(description)s,
    %(risk)s, %(allowed)s, %(args_schema)s, %(asked)s, %(requirements)s, %(pools)s, %(wanted)s, %(grant_life)s,
    %(closes_others)s, at, at + make_interval(secs => %(deadline)s), %(supersedes)s, %(automatic)s, '{}'
FROM fermata_now() AS at
"""
INSERT_REVISION = """
INSERT INTO approvals_revision (approval_id, number, args, action, review, requirements, diff, at)
VALUES (%(id)s, 1, %(args)s, %(action)s, %(review)s, %(requirements)s, '', fermata_now())
"""
VOID_GRANT = "UPDATE approvals_grant SET status = 'void' WHERE approval_id = %s AND status || '' = 'ready'"

FIRST_ASKED: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Opened:
    """An approval as it was opened, or found open. `action` and `review` are hex digests."""

    id: UUID
    key: str
    status: ApprovalStatus
    action: str
    review: str


def open_approvals(
    cursor: Cursor,
    prepared: PreparedAsks,
    *,
    run_id: UUID,
    turn: int,
    snapshot_digest: str,
    generations: Mapping[str, int] = FIRST_ASKED,
) -> list[Opened]:
    """Open the approvals of one gate; call it inside the transaction that holds the run's lock. `generations`: of those
    keys that were asked before, how often.

    An open approval of the same key is given back if it asks the same, and superseded if it does not; a grant that an
    earlier one left unspent is void. Plain SQL: `cursor` is psycopg's or Django's.

    Raises `PrepareAgain` where the policies have changed since `prepare`, or the same was rejected.
    """
    run = prepared.run
    check_still_so(
        cursor,
        team_id=run.team_id,
        agent_id=run.agent_id,
        rules=prepared.rules,
        not_rejected=[(each.ask.tool, each.ask.args) for each in prepared.asks if not each.wants_second_approver],
    )
    return [
        _open(cursor, item, run, turn=turn, snapshot=snapshot_digest, generation=generations.get(item.ask.key, 0))
        for item in prepared.asks
    ]


def _open(cursor: Cursor, item: PreparedAsk, run: RunFacts, *, turn: int, snapshot: str, generation: int) -> Opened:
    ask = item.ask
    requirements = item.requirements.to_text()
    action = digests.action_digest(
        team_id=run.team_id,
        agent_id=run.agent_id,
        run_id=run.run_id,
        turn=turn,
        key=ask.key,
        revision=1,
        tool=ask.tool,
        tool_version=ask.tool_version,
        target=ask.target,
        args=ask.args,
    )
    review = digests.review_digest(
        action=action,
        requirements=requirements,
        snapshot_digest=snapshot,
        title=ask.title,
        description=ask.description,
    )
    cursor.execute(FIND_PROPOSAL, (run.run_id, turn, ask.key))
    earlier = cursor.fetchone()
    if earlier is not None:
        earlier_id, status, current_action, current_review, proposed, _ = earlier
        if proposed == action and status in ("pending", "held"):
            return Opened(earlier_id, ask.key, ApprovalStatus(status), current_action, current_review)
        _close_earlier(cursor, earlier_id, run)
    new = uuid4()
    row = {
        "id": new,
        "team": run.team_id,
        "agent": run.agent_id,
        "run": run.run_id,
        "turn": turn,
        "key": ask.key,
        "generation": generation,
        "tool": ask.tool,
        "tool_version": ask.tool_version,
        "target": ask.target,
        "args": ask.args,
        "action": action,
        "review": review,
        "snapshot": snapshot,
        "title": ask.title,
        "description": ask.description,
        "risk": item.requirements.risk.value,
        "allowed": list(ask.allowed),
        "args_schema": ask.args_schema,
        "asked": item.asked.to_text(),
        "requirements": requirements,
        "pools": sorted(item.requirements.pools),
        "wanted": sorted(item.requirements.wanted),
        "grant_life": item.requirements.grant_life,
        "closes_others": ask.closes_others,
        "deadline": deadline.total_seconds() if (deadline := item.requirements.deadline) else None,
        "supersedes": earlier[0] if earlier else None,
        "automatic": item.automatic,
    }
    cursor.execute(INSERT_APPROVAL, row)
    cursor.execute(INSERT_REVISION, row)
    audit.append(
        cursor,
        chain=f"approval:{new}",
        type=EventType.APPROVAL_REQUESTED,
        actor=f"agent:{run.agent_id}",
        team_id=run.team_id,
        body={
            "approval": str(new),
            "run": str(run.run_id),
            "agent": str(run.agent_id),
            "tool": ask.tool,
            "args": ask.args,
            "revision": 1,
            "action": action,
            "review": review,
            "requirements": requirements,
            "supersedes": str(earlier[0]) if earlier else None,
        },
    )
    if item.requirements.denied_by is None:
        return Opened(new, ask.key, ApprovalStatus.PENDING, action, review)
    _deny(cursor, new, item.requirements.denied_by)
    return Opened(new, ask.key, ApprovalStatus.REJECTED, action, review)


def _deny(cursor: Cursor, approval_id: UUID, policy: str) -> None:
    """What a policy denies is asked, for the record, and rejected in the same breath."""
    message = denial(policy)
    settled = conclude(cursor, approval_id=approval_id, outcome=ApprovalStatus.REJECTED, actor=SYSTEM, message=message)
    if settled is None:
        raise RuntimeError(f"approval {approval_id} was settled before it was committed")
    answer = gate_answer(
        approval_id, ApprovalStatus.REJECTED, message=message, args=settled.args, action=settled.action, by=None
    )
    answer_gate(cursor, run_id=settled.run_id, turn=settled.turn, key=settled.key, answer=answer)


def _close_earlier(cursor: Cursor, approval_id: UUID, run: RunFacts) -> None:
    """The same gate asks something else now: what was asked before can be neither decided nor performed any more."""
    actor = f"agent:{run.agent_id}"
    if conclude(cursor, approval_id=approval_id, outcome=ApprovalStatus.SUPERSEDED, actor=actor) is not None:
        return
    cursor.execute(VOID_GRANT, (approval_id,))
    if cursor.rowcount == 1:
        audit.append(
            cursor,
            chain=f"approval:{approval_id}",
            type=EventType.GRANT_VOIDED,
            actor=actor,
            team_id=run.team_id,
            body={"approval": str(approval_id), "run": str(run.run_id), "reason": "asked again"},
        )
