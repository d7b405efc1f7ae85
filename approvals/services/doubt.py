"""In doubt: a call was started and nobody knows whether it happened. A person says so, and the run goes on."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

from django.contrib.auth.models import User

from approvals import audit, canonical, digests, policies
from approvals.audit import EventType
from approvals.errors import NotAllowed, NotEligible, StaleReview, VoteInvalid
from approvals.models import Approval, Grant
from approvals.policies import Asked, Requirements
from approvals.secrecy import credentials_in
from approvals.services.case import Case
from approvals.services.deciding import deciding, retry_deadlocks
from approvals.services.freshness import SYSTEM
from approvals.services.settling import already_decided
from approvals.states import ApprovalKind, ApprovalStatus, GrantStatus, Risk, Verdict
from checkpoints import codec
from runs.hooks import Cursor
from runs.models import Run, Step
from runs.principals import Person
from runs.services.answering import resolve_step
from runs.services.controlling import end_cancelled
from runs.strictjson import NotStrictJSON

Answer = Literal["happened", "not_happened", "stop"]

OPEN_ALREADY = """
SELECT 1 FROM approvals_approval
WHERE run_id = %s AND turn = %s AND key = %s AND kind = 'in_doubt' AND generation = %s AND status || '' = 'pending'
"""
INSERT = """
INSERT INTO approvals_approval (
    id, team_id, agent_id, run_id, kind, turn, key, generation, status, tool, tool_version, target, revision, args,
    action, review, snapshot_digest, title, description, risk, allowed, args_schema, asked, requirements, pools, wanted,
    grant_life, created_at, safe_at, voted_by
) VALUES (
    %(id)s, %(team)s, %(agent)s, %(run)s, 'in_doubt', %(turn)s, %(key)s, %(generation)s, 'pending', %(tool)s, '',
    %(target)s, 1, %(args)s, %(action)s, %(review)s, '', %(title)s, '', %(risk)s, %(allowed)s, '{}', %(asked)s,
    %(requirements)s, %(pools)s, '{}', interval '0', fermata_now(), %(safe_at)s, '{}'
)
"""
INSERT_REVISION = """
INSERT INTO approvals_revision (approval_id, number, args, action, review, requirements, diff, at)
VALUES (%(id)s, 1, %(args)s, %(action)s, %(review)s, %(requirements)s, '', fermata_now())
"""
DOUBT_GRANT = "UPDATE approvals_grant SET status = 'in_doubt' WHERE approval_id = %s AND status = 'spent'"


@dataclass(frozen=True)
class _Original:
    """What decides who may answer: the approval that permitted the call, or else the policies."""

    args: str
    target: str
    asked: Asked
    requirements: Requirements


def open_in_doubt(
    cursor: Cursor,
    *,
    run_id: UUID,
    turn: int,
    key: str,
    tool: str,
    arguments: dict[str, Any],
    generation: int,
    started_at: datetime,
    safe_at: datetime,
    approval_id: UUID | None,
) -> None:
    """Ask a person whether a call happened, in the transaction that parks the run. Asking again changes nothing.

    `arguments` are values that the snapshot codec can save. `approval_id` is the approval whose grant the call spent,
    None for a call that needed none. From `safe_at` on, "it did not happen" is safe to say.
    """
    cursor.execute(OPEN_ALREADY, (run_id, turn, key, generation))
    if cursor.fetchone() is not None:
        return
    run = Run.objects.select_related("agent").get(pk=run_id)
    original = _original(run, tool, arguments, approval_id)
    new = uuid4()
    requirements = original.requirements.to_text()
    action = digests.action_digest(
        team_id=run.team_id,
        agent_id=run.agent_id,
        run_id=run_id,
        turn=turn,
        key=key,
        revision=1,
        tool=tool,
        tool_version="",
        target=original.target,
        args=original.args,
    )
    title = f"Did this happen? {tool}"
    review = digests.review_digest(
        action=action, requirements=requirements, snapshot_digest="", title=title, description=started_at.isoformat()
    )
    row = {
        "id": new,
        "team": run.team_id,
        "agent": run.agent_id,
        "run": run_id,
        "turn": turn,
        "key": key,
        "generation": generation,
        "tool": tool,
        "target": original.target,
        "args": original.args,
        "action": action,
        "review": review,
        "title": title,
        "risk": original.requirements.risk.value,
        "allowed": [Verdict.REJECT.value],
        "asked": original.asked.to_text(),
        "requirements": requirements,
        "pools": sorted(original.requirements.pools),
        "safe_at": safe_at,
    }
    cursor.execute(INSERT, row)
    cursor.execute(INSERT_REVISION, row)
    if approval_id is not None:
        cursor.execute(DOUBT_GRANT, (approval_id,))
    audit.append(
        cursor,
        chain=f"approval:{new}",
        type=EventType.STEP_IN_DOUBT,
        actor=SYSTEM,
        team_id=run.team_id,
        body={
            "approval": str(new),
            "run": str(run_id),
            "agent": str(run.agent_id),
            "tool": tool,
            "args": original.args,
            "granted_by": str(approval_id) if approval_id else None,
            "started_at": started_at.isoformat(),
            "safe_at": safe_at.isoformat(),
        },
    )


@retry_deadlocks
def resolve_in_doubt(
    *, approval_id: UUID, person: User, answer: Answer, review: str, outcome: Any = None, message: str = ""
) -> Approval:
    """Say what became of the call, and let the run go on: with `outcome` (a JSON value) as the call's result if it
    happened; by making the call if it did not; or not at all (`stop` cancels the run).

    Raises `NotVisible`, `NotEligible`, `AlreadyDecided`, `StaleReview`, `NotAllowed` (too early to say that it did not
    happen, or no such question), `VoteInvalid`. Each of them is put on record.
    """
    by = Person(person)
    with deciding(approval_id, by=by, attempt="resolve") as case:
        if case.approval.kind != ApprovalKind.IN_DOUBT:
            raise NotAllowed(approval_id, answer, "Nothing is in doubt here.")
        if why := case.electorate([person.pk]).why_not(person.pk):
            raise NotEligible(approval_id, why)
        if not case.approval.is_open:
            raise already_decided(case)
        if review != case.approval.review:
            raise StaleReview(approval_id, case.approval.review, None)
        _check_words(case, outcome, message)
        match answer:
            case "happened":
                _happened(case, person, outcome, message)
            case "not_happened":
                _did_not_happen(case, person, message)
            case "stop":
                case.settle(ApprovalStatus.REJECTED, actor=by.actor, message=message, by=person)
                end_cancelled(case.cursor, case.run, actor=by.actor, reason=f"{case.approval.tool} was in doubt")
            case _:
                raise VoteInvalid(approval_id, [("answer", "must be happened, not_happened or stop")])
    return case.approval


def _happened(case: Case, person: User, outcome: Any, message: str) -> None:
    by, approval = Person(person), case.approval
    grant = _doubted_grant(case)
    case.settle(ApprovalStatus.RESPONDED, actor=by.actor, message=message, by=person)
    if grant is not None:
        _move(grant, GrantStatus.SUCCEEDED, case, canonical.dumps(outcome))
    _resolved(case, by, {"answer": "happened", "result": canonical.dumps(outcome)})
    resolve_step(
        case.cursor, run_id=approval.run_id, turn=approval.turn, key=approval.key, happened=True, outcome=outcome
    )


def _did_not_happen(case: Case, person: User, message: str) -> None:
    """The call will be made now. A grant that ran out meanwhile has lapsed, so the run will ask again instead."""
    by, approval = Person(person), case.approval
    if approval.safe_at is not None and case.now < approval.safe_at:
        raise NotAllowed(
            approval.pk, "not_happened", f"The call may still arrive: say so after {approval.safe_at:%H:%M:%S} UTC."
        )
    grant = _doubted_grant(case)
    case.settle(ApprovalStatus.APPROVED, actor=by.actor, message=message, by=person)
    if grant is not None:
        _move(grant, GrantStatus.SPENT if grant.expires_at > case.now else GrantStatus.LAPSED, case, "")
    _resolved(case, by, {"answer": "not_happened"})
    resolve_step(case.cursor, run_id=approval.run_id, turn=approval.turn, key=approval.key, happened=False)


def _resolved(case: Case, by: Person, body: dict[str, Any]) -> None:
    case.record(EventType.STEP_RESOLVED, by.actor, {"person": by.user.pk, **body}, person_id=by.user.pk)


def _doubted_grant(case: Case) -> Grant | None:
    """The grant that the call in doubt spent, locked after run and approval."""
    approval = case.approval
    step = Step.objects.filter(run=approval.run_id, turn=approval.turn, key=approval.key).first()
    if step is None or step.grant_id is None:
        return None
    return (
        Grant.objects.select_for_update(no_key=True).filter(approval=step.grant_id, status=GrantStatus.IN_DOUBT).first()
    )


def _move(grant: Grant, status: GrantStatus, case: Case, outcome: str) -> None:
    grant.status, fields = status, ["status"]
    if outcome:
        grant.outcome, grant.outcome_at, grant.observed = outcome, case.now, False
        fields += ["outcome", "outcome_at", "observed"]
    grant.save(update_fields=fields)
    audit.append(
        case.cursor,
        chain=f"approval:{grant.approval_id}",
        type=EventType.GRANT_LAPSED if status == GrantStatus.LAPSED else EventType.GRANT_OUTCOME,
        actor=SYSTEM,
        team_id=case.approval.team_id,
        body={"approval": str(grant.approval_id), "run": str(case.approval.run_id), "outcome": status.value},
    )


def _original(run: Run, tool: str, arguments: dict[str, Any], approval_id: UUID | None) -> _Original:
    granted = Approval.objects.filter(pk=approval_id).first() if approval_id else None
    if granted is not None:
        return _Original(
            args=granted.args,
            target=granted.target,
            asked=Asked.from_text(granted.asked),
            requirements=Requirements.from_text(granted.requirements),
        )
    args = canonical.dumps(codec.to_jsonable(arguments))
    asked = Asked(risk=Risk.LOW)
    rules = policies.rules_of(run.team_id)
    requirements = policies.required(rules, agent=run.agent.name, tool=tool, args=args, asked=asked)
    return _Original(args=args, target=run.agent.target, asked=asked, requirements=requirements)


def _check_words(case: Case, outcome: Any, message: str) -> None:
    errors = []
    for field, value in (("outcome", outcome), ("message", message)):
        try:
            canonical.dumps(value)
        except NotStrictJSON as error:
            errors += [(f"{field}{finding.pointer}", finding.detail) for finding in error.findings]
        else:
            errors += [(f"{field}{place}", wrong) for place, wrong in credentials_in(value)]
    if errors:
        raise VoteInvalid(case.approval.pk, errors)
