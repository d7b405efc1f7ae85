"""Rare events by type, for the audit page; made while everything else goes on. No run that waits for its first decision
has one.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q

EVERYDAY = (
    "approval.held",
    "approval.requested",
    "approval.settled",
    "approval.viewed",
    "grant.outcome",
    "grant.spent",
    "run.finished",
    "run.started",
    "vote.cast",
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("approvals", "0013_guarded_webhooks")]

    operations = [
        AddIndexConcurrently(
            "auditevent",
            models.Index(
                fields=["team", "type", "-at", "-id"],
                condition=Q(("type__in", EVERYDAY), _negated=True),
                name="approvals_audit_by_type",
            ),
        ),
    ]
