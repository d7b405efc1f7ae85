"""Approving by a rule, within its caps; and the switch that stops all of it at once."""

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals import audit
from approvals.audit import EventType
from approvals.models import Approval, AutomaticRule, AutomaticStop
from approvals.policies import automatic
from approvals.services.case import Case, take
from approvals.services.deciding import retry_deadlocks
from approvals.services.freshness import SYSTEM, freshen
from approvals.services.refusing import refuse_change
from approvals.states import ApprovalStatus
from runs.clock import database_now
from runs.hooks import Cursor
from runs.models import Membership, Role, Team
from runs.principals import Person

# The counter's row lock makes the last place under a cap go to one of those who want it at once.
COUNT = """
INSERT INTO approvals_automatic_use AS used (rule_id, agent_id, window_start, count, total)
VALUES (%(rule)s, %(agent)s, %(start)s, 1, %(adds)s)
ON CONFLICT (rule_id, agent_id, window_start) DO UPDATE
SET count = used.count + 1, total = used.total + EXCLUDED.total
WHERE used.count < %(max_count)s AND (%(max_sum)s::numeric IS NULL OR used.total + EXCLUDED.total <= %(max_sum)s)
RETURNING count
"""


@retry_deadlocks
def apply_rule(*, approval_id: UUID) -> bool:
    """Let the approval's rule approve it, if it still may. If not, the approval waits for people from now on."""
    run_id = Approval.objects.values_list("run_id", flat=True).get(pk=approval_id)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        case = take(cursor, approval_id=approval_id, run_id=run_id)
        freshen(case)
        if case.approval.status != ApprovalStatus.PENDING or case.approval.automatic_id is None:
            return False
        rule = _still(case)
        case.change(automatic=None)
        if rule is None or not _has_room(case, rule):
            case.record(EventType.APPROVAL_RECOUNTED, SYSTEM, {"message": "no automatic rule may approve this now"})
            return False
        case.settle(ApprovalStatus.APPROVED, actor=SYSTEM, message=f"by the automatic rule {rule.name!r}")
    return True


def stop(*, team: Team, by: User, reason: str = "") -> None:
    """The kill switch: from now on no rule approves anything in the team. Again: nothing changes.

    Raises `ChangeRefused` for anybody but the team's operators and administrators. `policymaking` lifts it.
    """
    if not Membership.objects.filter(user=by, team=team, roles__overlap=[Role.OPERATOR, Role.ADMIN]).exists():
        why = "Only operators and administrators of the team can stop its automatic rules."
        refuse_change(by=by, attempt="stop the automatic rules", teams=[team.pk], why=why)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        if AutomaticStop.objects.filter(team=team, lifted_at__isnull=True).exists():
            return
        AutomaticStop.objects.create(team=team, by=by, reason=reason, at=database_now())
        _record(cursor, team, by, reason)


def _still(case: Case) -> AutomaticRule | None:
    """The rule, if it is in force, nothing is stopped, and it matches what the approval is now."""
    approval = case.approval
    if AutomaticStop.objects.filter(team=approval.team_id, lifted_at__isnull=True).exists():
        return None
    rule = [rule for rule in automatic.live_rules(approval.team_id) if rule.pk == approval.automatic_id]
    return automatic.candidate(
        rule, case.requirements, agent=approval.agent.name, tool=approval.tool, args=approval.args
    )


def _has_room(case: Case, rule: AutomaticRule) -> bool:
    """Take a place under the rule's caps for this agent and window; False where there is none."""
    adds = automatic.summed(rule, case.approval.args)
    if adds is None or (rule.max_sum is not None and adds > rule.max_sum):
        return False
    case.cursor.execute(
        COUNT,
        {
            "rule": rule.pk,
            "agent": case.approval.agent_id,
            "start": _window_start(case.now, rule),
            "adds": adds,
            "max_count": rule.max_count,
            "max_sum": rule.max_sum,
        },
    )
    return case.cursor.fetchone() is not None


def _window_start(now: datetime, rule: AutomaticRule) -> datetime:
    length = Decimal(rule.window.total_seconds())
    return datetime.fromtimestamp(float(Decimal(now.timestamp()) // length * length), UTC)


def _record(cursor: Cursor, team: Team, by: User, reason: str) -> None:
    audit.append(
        cursor,
        chain=f"team:{team.pk}",
        type=EventType.POLICY_CHANGED,
        actor=Person(by).actor,
        team_id=team.pk,
        body={"what": "automatic rules stopped", "message": reason},
    )
