"""Who must decide about what. Versions are never changed; a policy points at its newest."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.states import Risk
from runs.models import Team


class Policy(models.Model):
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="policies")
    name = models.CharField(max_length=80)
    is_active = models.BooleanField(default=True)

    class Meta:
        ordering = ("name",)
        verbose_name_plural = "policies"
        constraints = (models.UniqueConstraint(fields=("team", "name"), name="approvals_policy_name_per_team"),)

    def __str__(self) -> str:
        return self.name


class PolicyVersion(models.Model):
    """One version of a policy: what it matches, and what it asks for.

    Empty match fields match everything. `quorum` is JSON text: `[{"group": "finance", "count": 2}, …]`, where a
    null group is the reviewers of the team. `escalation`, likewise `[{"group": "managers", "seconds": 3600}, …]`, says
    who may fill the same seats once the deadline has passed, and for how long; then the approval expires.
    """

    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    agents = ArrayField(models.CharField(max_length=80), default=list, blank=True)
    tools = ArrayField(
        models.CharField(max_length=128), default=list, blank=True, help_text="Names, or prefixes ending in *."
    )
    risk_at_least = models.CharField(max_length=6, choices=Risk.choices, blank=True)
    condition = models.TextField(blank=True, help_text="JSON Schema over the arguments; empty matches all.")
    deny = models.BooleanField(default=False, help_text="What this matches is rejected, and not performed any more.")
    quorum = models.TextField()
    risk = models.CharField(max_length=6, choices=Risk.choices, blank=True, help_text="The risk is at least this.")
    allow_edits = models.BooleanField(default=True)
    require_reason = models.BooleanField(default=False)
    require_reauthentication = models.BooleanField(default=False)
    allow_automatic = models.BooleanField(default=False, help_text="An automatic rule may approve what this matches.")
    rejections = models.PositiveSmallIntegerField(default=1, help_text="How many people must reject to reject.")
    deadline = models.DurationField(null=True, blank=True)
    minimum_deadline = models.DurationField(null=True, blank=True, help_text="The least that an agent may ask for.")
    escalation = models.TextField(default="[]", blank=True)
    grant_life = models.DurationField(null=True, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-number",)
        constraints = (
            models.UniqueConstraint(fields=("policy", "number"), name="approvals_policyversion_numbered"),
            models.CheckConstraint(condition=Q(number__gte=1), name="approvals_policyversion_from_one"),
            models.CheckConstraint(condition=Q(rejections__gte=1), name="approvals_policyversion_rejectable"),
            models.CheckConstraint(
                condition=~Q(quorum="[]") | Q(deny=True), name="approvals_policyversion_asks_somebody"
            ),
        )

    def __str__(self) -> str:
        return f"{self.policy} v{self.number}"
