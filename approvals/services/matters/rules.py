"""Policies, automatic rules, and the end of a stop: each concerns the whole of its team."""

from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Max

from approvals import canonical
from approvals.audit import EventType
from approvals.models import AutomaticRule, AutomaticStop, Policy
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.services.matters.base import Matter
from approvals.services.premises import rules_change
from runs.clock import database_now


class RuleMatter(Matter):
    event = EventType.POLICY_CHANGED

    def teams(self) -> frozenset[int]:
        return frozenset([self.change.team_id])


class PolicyMatter(RuleMatter):
    @cached_property
    def draft(self) -> PolicyDraft:
        return PolicyDraft.from_text(self.change.body)

    def base(self) -> str:
        policy = Policy.objects.filter(team=self.change.team_id, name=self.draft.name).first()
        return f"{policy.is_active} {_newest(policy)}" if policy else "none"

    def apply(self, by: User) -> None:
        change, draft = self.change, self.draft
        with connection.cursor() as cursor:
            rules_change(cursor, change.team_id)
        policy, _ = Policy.objects.get_or_create(team_id=change.team_id, name=draft.name)
        policy.is_active = draft.is_active
        policy.save(update_fields=["is_active"])
        policy.versions.create(
            number=_newest(policy) + 1,
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


class AutomaticRuleMatter(RuleMatter):
    @cached_property
    def draft(self) -> RuleDraft:
        return RuleDraft.from_text(self.change.body)

    def base(self) -> str:
        rules = AutomaticRule.objects.filter(team=self.change.team_id, name=self.draft.name, is_active=True)
        return str(rules.values_list("pk", flat=True).first())

    def apply(self, by: User) -> None:
        change, draft = self.change, self.draft
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


class LiftStopMatter(RuleMatter):
    def base(self) -> str:
        """Whatever was stopped: confirming it again, or late, lifts nothing that it was not proposed for."""
        stops = AutomaticStop.objects.filter(team=self.change.team_id, lifted_at__isnull=True)
        return str(stops.values_list("pk", flat=True).first())

    def apply(self, by: User) -> None:
        stops = AutomaticStop.objects.filter(team=self.change.team_id, lifted_at__isnull=True)
        stops.update(lifted_by=by, lifted_at=database_now())


def _newest(policy: Policy) -> int:
    """The number of its newest version; 0 where it has none."""
    return int(policy.versions.aggregate(number=Max("number"))["number"] or 0)


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
