"""Open cards by their sets of pools in the queue's order: *Waiting on others* gathered and sorted all of a set.

Both are made and dropped while everything else goes on. Docs: decisions/033.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("approvals", "0011_anchor_claim")]

    operations = [
        AddIndexConcurrently(
            "approval",
            models.Index(
                fields=["team", "pools", "expires_at", "created_at", "id"],
                condition=Q(status__in=["held", "pending"]),
                name="approvals_open_pools_by_due",
            ),
        ),
        RemoveIndexConcurrently("approval", "approvals_open_by_pools"),
    ]
