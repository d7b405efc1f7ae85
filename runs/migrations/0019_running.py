"""What runs has an index of its own, and what is queued one alone: with both in one, PostgreSQL looked for the oldest queued
run among all that are queued, once it had taken these for none. Made and dropped while everything else goes on; what stopped in the middle can be run
again.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0018_sound_rows")]

    operations = [
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS runs_head_running", migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="runhead",
            index=models.Index(condition=models.Q(("status", "running")), fields=["run"], name="runs_head_running"),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex("runhead", "runs_head_live")],
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS runs_head_live",
                    """CREATE INDEX CONCURRENTLY IF NOT EXISTS runs_head_live ON runs_head (status)
                       WHERE status IN ('queued', 'running')""",
                ),
            ],
        ),
    ]
