"""Before anybody acts on an open approval: let a passed deadline pass, and let a tighter policy apply."""

from approvals import policies
from approvals.audit import EventType
from approvals.models import Approval
from approvals.policies import Asked, Requirements
from approvals.services.case import Case
from approvals.states import ApprovalKind, ApprovalStatus
from runs.states import FINISHED

SYSTEM = "system"


def freshen(case: Case) -> None:
    """Bring an open approval to what its run, the clock and the policies say now."""
    if case.approval.is_open and case.run.status in FINISHED:
        case.settle(ApprovalStatus.CANCELLED, actor=SYSTEM, message="the run ended")
    pass_deadline(case)
    tighten(case)


def pass_deadline(case: Case) -> None:
    """A pending approval whose deadline has passed goes to its next stage, with its votes, or expires.

    A held vote was in time, so a held approval has no deadline any more.
    """
    approval, needs = case.approval, case.requirements
    while approval.status == ApprovalStatus.PENDING and approval.expires_at and approval.expires_at <= case.now:
        end = approval.created_at + needs.ends if needs.ends is not None else None
        if not needs.stages or (end is not None and approval.expires_at >= end):
            case.settle(ApprovalStatus.EXPIRED, actor=SYSTEM)
            return
        stage = needs.stages[0]
        due = approval.expires_at + stage.lasts
        needs = needs.escalate(stage)
        case.change(expires_at=due if end is None else min(due, end), announced_at=None)
        case.require(needs)
        case.record(EventType.APPROVAL_ESCALATED, SYSTEM, {"pool": stage.pool, "due": approval.expires_at.isoformat()})


def tighten(case: Case) -> None:
    """A tighter policy applies at once to what is open; a looser one does not, unless it is applied again by hand.

    What a policy denies now is rejected.
    """
    approval = case.approval
    if not approval.is_open or approval.kind != ApprovalKind.ACTION:
        return
    tighter = case.requirements.tightened_by(current_requirements(approval, case.requirements))
    if tighter is not case.requirements:
        case.require(tighter)
        case.record(EventType.APPROVAL_RECOUNTED, SYSTEM, {"requirements": tighter.to_text()})
    if tighter.denied_by is not None:
        case.settle(ApprovalStatus.REJECTED, actor=SYSTEM, message=denial(tighter.denied_by))


def denial(policy: str) -> str:
    """What the run is told about an action that a policy denies."""
    return f"denied by the policy {policy!r}"


def current_requirements(approval: Approval, in_force: Requirements) -> Requirements:
    """What today's policies ask for the approval's current arguments, with the escalations already taken."""
    needs = policies.required(
        policies.rules_of(approval.team_id),
        agent=approval.agent.name,
        tool=approval.tool,
        args=approval.args,
        asked=Asked.from_text(approval.asked),
    )
    for stage in in_force.escalated:
        needs = needs.escalate(stage)
    return needs
