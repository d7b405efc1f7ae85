import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """An agent's runs, newest first: its list was gathered and sorted. The index takes the foreign key's place too."""

    atomic = False

    dependencies = [("runs", "0016_admin_since")]

    operations = [
        AddIndexConcurrently("run", models.Index(fields=["agent", "-created_at"], name="runs_run_of_agent")),
        migrations.AlterField(
            model_name="run",
            name="agent",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="runs", to="runs.agent"
            ),
        ),
    ]
