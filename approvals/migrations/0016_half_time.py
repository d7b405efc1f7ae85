"""Whom to remind, by when half of the time has passed: the search for them read every card that had no reminder yet.

Made and dropped while everything else goes on.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models
from django.db.models import Func, Q

HALF_TIME = Func(
    Func("expires_at", template="(%(expressions)s AT TIME ZONE 'UTC')"),
    Func(
        Func("expires_at", "created_at", template="(%(expressions)s)", arg_joiner=" - "), template="%(expressions)s / 2"
    ),
    template="(%(expressions)s)",
    arg_joiner=" - ",
    output_field=models.DateTimeField(),
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("approvals", "0015_erasing")]

    operations = [
        AddIndexConcurrently(
            "approval",
            models.Index(
                HALF_TIME,
                condition=Q(("expires_at__isnull", False), ("reminded_at__isnull", True), ("status", "pending")),
                name="approvals_to_remind",
            ),
        ),
        RemoveIndexConcurrently("approval", "approvals_unreminded"),
    ]
