"""Changing the rules: each is a proposal, and what is open follows where the change is stricter."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals.audit import EventType
from approvals.errors import PolicyInvalid, SettledMeanwhile
from approvals.models import Approval, ChangeKind, Policy, RuleChange
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.queries.rules import open_under
from approvals.services.case import take
from approvals.services.changes import check_administers, propose
from approvals.services.freshness import current_requirements, freshen
from approvals.services.settling import NO_HOLD, count
from approvals.states import ApprovalKind, ApprovalStatus
from runs.models import Team
from runs.principals import Person

REAPPLY = "apply a policy again"


def propose_policy(*, team: Team, by: User, draft: PolicyDraft) -> RuleChange:
    """Propose the next version of a policy. Raises `ChangeRefused`, `PolicyInvalid`."""
    return _propose(team, by, ChangeKind.POLICY, draft)


def propose_automatic_rule(*, team: Team, by: User, draft: RuleDraft) -> RuleChange:
    """Propose an automatic rule, or, with `is_active` False, its end. Raises `ChangeRefused`, `PolicyInvalid`."""
    return _propose(team, by, ChangeKind.AUTOMATIC_RULE, draft)


def propose_lifting(*, team: Team, by: User) -> RuleChange:
    """Propose that the team's automatic rules go on after a stop. Raises `ChangeRefused`."""
    return propose(team=team, by=by, kind=ChangeKind.LIFT_STOP, body="{}")


def reapply(*, approval_id: UUID, by: User) -> Approval:
    """Give an open approval the requirements that today's policies ask, looser ones included, and count again.

    Raises `Approval.DoesNotExist`, `ChangeRefused`; `SettledMeanwhile`, if it is open no longer.
    """
    approval = Approval.objects.only("run_id", "team_id").get(pk=approval_id)
    check_administers(by=by, team=approval.team_id, attempt=REAPPLY)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        case = take(cursor, approval_id=approval_id, run_id=approval.run_id)
        freshen(case)
        if not case.approval.is_open or case.approval.kind != ApprovalKind.ACTION:
            raise SettledMeanwhile("It is settled.")
        before = case.approval.requirements
        case.require(current_requirements(case.approval, case.requirements))
        case.record(
            EventType.APPROVAL_RECOUNTED,
            Person(by).actor,
            {"requirements_before": before, "requirements": case.approval.requirements, "person": by.pk},
        )
        if case.approval.status == ApprovalStatus.PENDING:  # a held vote can still be taken back, and is counted then
            count(case, case.electorate([]), hold=NO_HOLD, actor=Person(by).actor)
    return case.approval


def reapply_policy(*, policy: Policy, by: User) -> int:
    """`reapply` to everything open that was asked under the policy; returns to how many. Raises `ChangeRefused`."""
    check_administers(by=by, team=policy.team_id, attempt=REAPPLY)
    seen = 0
    for approval_id in list(open_under(policy).order_by("id").values_list("id", flat=True)):
        try:
            reapply(approval_id=approval_id, by=by)
        except SettledMeanwhile:
            continue
        seen += 1
    return seen


def tighten_open(*, team_id: int) -> int:
    """Let today's policies apply to what is open in the team, where they are stricter. Gives back how many it saw.

    Nothing depends on it: every vote looks at the policies itself. It keeps what people read true meanwhile.
    """
    seen = 0
    open_ones = Approval.objects.filter(team=team_id, settled_at__isnull=True, kind=ApprovalKind.ACTION)
    for approval_id, run_id in open_ones.order_by("id").values_list("id", "run_id").iterator(chunk_size=500):
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            freshen(take(cursor, approval_id=approval_id, run_id=run_id))
        seen += 1
    return seen


def _propose(team: Team, by: User, kind: ChangeKind, draft: PolicyDraft | RuleDraft) -> RuleChange:
    if errors := draft.errors():
        raise PolicyInvalid(errors)
    return propose(team=team, by=by, kind=kind, body=draft.to_text())
