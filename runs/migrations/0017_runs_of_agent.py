"""An agent's runs, newest first: its list was gathered and sorted. The index takes the foreign key's place too.

Django would drop the foreign key to drop its index, and check all runs to make it again: the index is dropped by name.
"""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

INDEX = "runs_run_agent_id_d228ac08"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0016_admin_since")]

    operations = [
        AddIndexConcurrently("run", models.Index(fields=["agent", "-created_at"], name="runs_run_of_agent")),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="run",
                    name="agent",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.agent",
                    ),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {INDEX} ON runs_run (agent_id)",
                ),
            ],
        ),
    ]
