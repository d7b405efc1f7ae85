"""What an approved decision gives the run."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.models.approvals import Approval
from approvals.states import GrantStatus


class Grant(models.Model):
    """Permission to perform exactly `action`, once, before `expires_at`."""

    approval = models.OneToOneField(Approval, on_delete=models.PROTECT, primary_key=True, related_name="grant")
    status = models.CharField(max_length=9, choices=GrantStatus.choices, default=GrantStatus.READY)
    action = models.CharField(max_length=64)
    args = models.TextField()
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now())
    spent_at = models.DateTimeField(null=True, blank=True)
    spent_key = models.CharField(max_length=200, blank=True, help_text="The step, or the agent's key, that spent it.")
    outcome = models.TextField(blank=True, help_text="What happened, as JSON text.")
    outcome_at = models.DateTimeField(null=True, blank=True)
    observed = models.BooleanField(default=True, help_text="False: reported by the agent, not observed here.")

    class Meta:
        indexes = (
            models.Index(fields=("expires_at",), condition=Q(status=GrantStatus.READY), name="approvals_grant_ready"),
        )
        constraints = (
            models.CheckConstraint(condition=Q(status__in=GrantStatus.values), name="approvals_grant_status_known"),
            models.CheckConstraint(  # lapsed after being spent: it did not happen, and now it is too late
                condition=Q(spent_at__isnull=True, status__in=("ready", "revoked", "void", "lapsed"))
                | Q(spent_at__isnull=False, status__in=("spent", "succeeded", "failed", "in_doubt", "lapsed")),
                name="approvals_grant_spent_has_a_time",
            ),
        )

    def __str__(self) -> str:
        return f"grant for {self.approval_id}: {self.status}"
