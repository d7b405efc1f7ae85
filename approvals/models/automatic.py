"""Rules that approve without a person, within caps, and the switch that stops them all."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.models import Agent, Team


class AutomaticRule(models.Model):
    """Approves what it matches, at most `max_count` times for each agent and window, until `ends_at`.

    Only `is_active` ever changes. `sum_of` is a JSON pointer to a number in the arguments, whose sum for each agent and
    window is at most `max_sum`. High risk is never approved by a rule, and a policy must allow it.
    """

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="automatic_rules")
    name = models.CharField(max_length=80)
    is_active = models.BooleanField(default=True)
    agents = ArrayField(models.CharField(max_length=80), default=list, blank=True)
    tools = ArrayField(models.CharField(max_length=128), help_text="Names, or prefixes ending in *.")
    condition = models.TextField(default="{}", help_text="JSON Schema over the arguments.")
    window = models.DurationField()
    max_count = models.PositiveIntegerField()
    sum_of = models.CharField(max_length=200, blank=True)
    max_sum = models.DecimalField(max_digits=30, decimal_places=10, null=True, blank=True)
    ends_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "approvals_automatic_rule"
        ordering = ("name", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("team", "name"), condition=Q(is_active=True), name="approvals_automatic_rule_name"
            ),
            models.CheckConstraint(condition=~Q(tools=[]), name="approvals_automatic_rule_names_tools"),
            models.CheckConstraint(condition=Q(max_count__gte=1), name="approvals_automatic_rule_counts"),
            models.CheckConstraint(
                condition=Q(sum_of="", max_sum__isnull=True) | (~Q(sum_of="") & Q(max_sum__isnull=False)),
                name="approvals_automatic_rule_sums",
            ),
        )

    def __str__(self) -> str:
        return self.name


class AutomaticUse(models.Model):
    """What a rule has approved for one agent in one window."""

    pk = models.CompositePrimaryKey("rule_id", "agent_id", "window_start")
    rule = models.ForeignKey(AutomaticRule, on_delete=models.PROTECT, related_name="uses")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="+")
    window_start = models.DateTimeField()
    count = models.PositiveIntegerField()
    total = models.DecimalField(max_digits=40, decimal_places=10)

    class Meta:
        db_table = "approvals_automatic_use"

    def __str__(self) -> str:
        return f"{self.rule_id} for {self.agent_id}: {self.count}"


class AutomaticStop(models.Model):
    """The kill switch: while one is not lifted, no rule approves anything in the team."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="automatic_stops")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=Now())
    reason = models.TextField(blank=True)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    lifted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "approvals_automatic_stop"
        constraints = (
            models.UniqueConstraint(
                fields=("team",), condition=Q(lifted_at__isnull=True), name="approvals_automatic_stop_one"
            ),
        )

    def __str__(self) -> str:
        return f"stopped in {self.team_id}"
