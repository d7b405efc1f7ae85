"""Changing the rules: one administrator proposes, another confirms, and what is open follows where that is stricter.

Where there is only one administrator, that one may put a change in force alone: on record, and for all to see.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Max

from approvals import audit, canonical, dispatch
from approvals.audit import EventType
from approvals.errors import ChangeDecided, ChangeRefused, PolicyInvalid
from approvals.models import (
    Approval,
    AutomaticRule,
    AutomaticStop,
    ChangeKind,
    ChangeOutcome,
    Policy,
    RuleChange,
)
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.services.case import take
from approvals.services.freshness import current_requirements, freshen
from approvals.services.settling import NO_HOLD, count
from approvals.states import ApprovalKind
from runs.clock import database_now
from runs.hooks import Cursor
from runs.models import Membership, Role, Team
from runs.principals import Person


def propose_policy(*, team: Team, by: User, draft: PolicyDraft) -> RuleChange:
    """Propose the next version of a policy. Raises `ChangeRefused`, `PolicyInvalid`."""
    return _propose(team, by, ChangeKind.POLICY, draft)


def propose_automatic_rule(*, team: Team, by: User, draft: RuleDraft) -> RuleChange:
    """Propose an automatic rule, or, with `is_active` False, its end. Raises `ChangeRefused`, `PolicyInvalid`."""
    return _propose(team, by, ChangeKind.AUTOMATIC_RULE, draft)


def propose_lifting(*, team: Team, by: User) -> RuleChange:
    """Propose that the team's automatic rules go on after a stop. Raises `ChangeRefused`."""
    return _propose(team, by, ChangeKind.LIFT_STOP, None)


def confirm(*, change_id: int, by: User) -> RuleChange:
    """Put a proposal in force, as another administrator. Raises `RuleChange.DoesNotExist`, `ChangeRefused`."""
    return _put_in_force(change_id, by, alone=False, reason="")


def confirm_alone(*, change_id: int, by: User, reason: str) -> RuleChange:
    """Put one's own proposal in force, as the only administrator that there is, saying why.

    Raises `RuleChange.DoesNotExist`, `ChangeRefused`.
    """
    return _put_in_force(change_id, by, alone=True, reason=reason)


def withdraw(*, change_id: int, by: User) -> RuleChange:
    """Take a proposal back, or turn it down. Raises `RuleChange.DoesNotExist`, `ChangeRefused`."""
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        change = _open_change(change_id, by)
        _decide(cursor, change, by, ChangeOutcome.WITHDRAWN)
    return change


def reapply(*, approval_id: UUID, by: User) -> Approval:
    """Give an open approval the requirements that today's policies ask, looser ones included, and count again.

    Raises `Approval.DoesNotExist`, `ChangeRefused`.
    """
    approval = Approval.objects.only("run_id", "team_id").get(pk=approval_id)
    _check_administers(by, approval.team_id)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        case = take(cursor, approval_id=approval_id, run_id=approval.run_id)
        freshen(case)
        if not case.approval.is_open or case.approval.kind != ApprovalKind.ACTION:
            raise ChangeRefused("It is settled.")
        before = case.approval.requirements
        case.require(current_requirements(case.approval, case.requirements))
        case.record(
            EventType.APPROVAL_RECOUNTED,
            Person(by).actor,
            {"requirements_before": before, "requirements": case.approval.requirements, "person": by.pk},
        )
        count(case, case.electorate([]), hold=NO_HOLD, actor=Person(by).actor)
    return case.approval


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


# --- inside ------------------------------------------------------------------------------------------------------


def _propose(team: Team, by: User, kind: ChangeKind, draft: PolicyDraft | RuleDraft | None) -> RuleChange:
    _check_administers(by, team.pk)
    if draft is not None and (errors := draft.errors()):
        raise PolicyInvalid(errors)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        change = RuleChange.objects.create(
            team=team,
            kind=kind,
            body=draft.to_text() if draft is not None else "{}",
            proposed_by=by,
            proposed_at=database_now(),
        )
        _record(cursor, change, by, "proposed")
    return change


def _put_in_force(change_id: int, by: User, *, alone: bool, reason: str) -> RuleChange:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        change = _open_change(change_id, by)
        others = _administrators(change.team_id) - {by.pk}
        if alone and (others or change.proposed_by_id != by.pk or not reason.strip()):
            raise ChangeRefused("Another administrator must confirm it." if others else "Say why it cannot wait.")
        if not alone and change.proposed_by_id == by.pk:
            raise ChangeRefused("It was you who proposed it: another administrator must confirm it.")
        APPLY[ChangeKind(change.kind)](change, by)
        _decide(cursor, change, by, ChangeOutcome.CONFIRMED, alone=alone, reason=reason)
        dispatch.tighten(change.team_id)
    return change


def _apply_policy(change: RuleChange, by: User) -> None:
    draft = PolicyDraft.from_text(change.body)
    policy, _ = Policy.objects.get_or_create(team_id=change.team_id, name=draft.name)
    policy.is_active = draft.is_active
    policy.save(update_fields=["is_active"])
    newest = policy.versions.aggregate(number=Max("number"))["number"] or 0
    policy.versions.create(
        number=newest + 1,
        agents=list(draft.agents),
        tools=list(draft.tools),
        risk_at_least=draft.risk_at_least,
        condition=draft.condition,
        quorum=canonical.dumps(list(draft.quorum)),
        risk=draft.risk,
        allow_edits=draft.allow_edits,
        require_reason=draft.require_reason,
        require_reauthentication=draft.require_reauthentication,
        allow_automatic=draft.allow_automatic,
        rejections=draft.rejections,
        deadline=_span(draft.deadline),
        minimum_deadline=_span(draft.minimum_deadline),
        grant_life=_span(draft.grant_life),
        deny=draft.deny,
        escalation=canonical.dumps(list(draft.escalation)),
        created_by_id=change.proposed_by_id,
    )


def _apply_automatic_rule(change: RuleChange, by: User) -> None:
    draft = RuleDraft.from_text(change.body)
    AutomaticRule.objects.filter(team=change.team_id, name=draft.name, is_active=True).update(is_active=False)
    if draft.is_active:
        AutomaticRule.objects.create(
            team_id=change.team_id,
            name=draft.name,
            agents=list(draft.agents),
            tools=list(draft.tools),
            condition=draft.condition,
            window=timedelta(seconds=draft.window),
            max_count=draft.max_count,
            sum_of=draft.sum_of,
            max_sum=None if draft.max_sum is None else Decimal(draft.max_sum),
            ends_at=datetime.fromisoformat(draft.ends_at),
            created_by_id=change.proposed_by_id,
        )


def _lift_stop(change: RuleChange, by: User) -> None:
    AutomaticStop.objects.filter(team=change.team_id, lifted_at__isnull=True).update(
        lifted_by=by, lifted_at=database_now()
    )


APPLY: dict[ChangeKind, Callable[[RuleChange, User], None]] = {
    ChangeKind.POLICY: _apply_policy,
    ChangeKind.AUTOMATIC_RULE: _apply_automatic_rule,
    ChangeKind.LIFT_STOP: _lift_stop,
}


def _open_change(change_id: int, by: User) -> RuleChange:
    """The undecided proposal, locked after its team: two proposals about one policy are put in force one by one."""
    team = RuleChange.objects.values_list("team_id", flat=True).get(pk=change_id)
    Team.objects.select_for_update(no_key=True).get(pk=team)
    change = RuleChange.objects.select_for_update(no_key=True).get(pk=change_id)
    _check_administers(by, change.team_id)
    if change.decided_by is not None and change.decided_at is not None:
        who = change.decided_by.get_full_name() or change.decided_by.get_username()
        raise ChangeDecided(
            f"{who} has {change.outcome} it already.", by=who, outcome=change.outcome, at=change.decided_at
        )
    return change


def _decide(
    cursor: Cursor, change: RuleChange, by: User, outcome: ChangeOutcome, *, alone: bool = False, reason: str = ""
) -> None:
    change.outcome, change.decided_by, change.decided_at = outcome, by, database_now()
    change.alone, change.reason = alone, reason
    change.save(update_fields=["outcome", "decided_by", "decided_at", "alone", "reason"])
    _record(cursor, change, by, "confirmed alone" if alone else outcome.value)


def _administrators(team_id: int) -> set[int]:
    admins = Membership.objects.filter(team=team_id, roles__contains=[Role.ADMIN], user__is_active=True)
    return set(admins.values_list("user_id", flat=True))


def _check_administers(by: User, team_id: int) -> None:
    if by.pk not in _administrators(team_id):
        raise ChangeRefused("Only an administrator of the team can change its rules.")


def _record(cursor: Cursor, change: RuleChange, by: User, what: str) -> None:
    audit.append(
        cursor,
        chain=f"team:{change.team_id}",
        type=EventType.POLICY_CHANGED,
        actor=Person(by).actor,
        team_id=change.team_id,
        body={"what": what, "kind": change.kind, "change": change.pk, "rule": change.body, "message": change.reason},
    )


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
