"""Changes of what guards high risk: proposed by one administrator, confirmed by another."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from runs.models import Team


class ChangeKind(models.TextChoices):
    POLICY = "policy"
    AUTOMATIC_RULE = "automatic_rule"
    LIFT_STOP = "lift_stop"
    GROUP = "group"
    MEMBERSHIP = "membership"
    AGENT = "agent"
    AGENT_KEY = "agent_key"
    WEBHOOK = "webhook"
    RESET_LINK = "reset_link"


class ChangeOutcome(models.TextChoices):
    """`applied`: at once, because it guards nothing of high risk."""

    CONFIRMED = "confirmed"
    APPLIED = "applied"
    WITHDRAWN = "withdrawn"


class RuleChange(models.Model):
    """A proposal. `body` is canonical JSON text of what is to be; `base` the digest of what it changes, as it was then.

    `team` is where it was proposed; `teams` are those whose decisions about high risk it touches. `alone`: the only
    administrator there was put it in force without a second pair of eyes.
    """

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="rule_changes")
    kind = models.CharField(max_length=16, choices=ChangeKind.choices)
    body = models.TextField()
    base = models.CharField(max_length=64, blank=True, db_default="")
    teams = ArrayField(models.BigIntegerField(), default=list, blank=True, db_default=[])
    proposed_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    proposed_at = models.DateTimeField(db_default=Now())
    outcome = models.CharField(max_length=9, choices=ChangeOutcome.choices, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    alone = models.BooleanField(default=False)
    reason = models.TextField(blank=True)

    class Meta:
        db_table = "approvals_rule_change"
        ordering = ("-proposed_at", "-id")
        indexes = (models.Index(fields=("team", "-id"), name="approvals_rule_change_newest"),)
        constraints = (
            models.CheckConstraint(condition=Q(kind__in=ChangeKind.values), name="approvals_rule_change_kind_known"),
            models.CheckConstraint(
                condition=Q(outcome="", decided_by__isnull=True, decided_at__isnull=True)
                | Q(outcome__in=ChangeOutcome.values, decided_by__isnull=False, decided_at__isnull=False),
                name="approvals_rule_change_decided_by_somebody",
            ),
            models.CheckConstraint(
                condition=~Q(outcome=ChangeOutcome.CONFIRMED, alone=False) | ~Q(decided_by=F("proposed_by")),
                name="approvals_rule_change_second_person",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}: {self.outcome or 'proposed'}"
