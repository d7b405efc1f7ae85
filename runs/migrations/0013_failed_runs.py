import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Failed runs by when they failed; and no index of the team alone, with which `runs_run_newest` begins."""

    atomic = False

    dependencies = [("runs", "0012_queued_at")]

    operations = [
        AddIndexConcurrently(
            "run",
            models.Index(
                fields=["team", "-finished_at"],
                condition=models.Q(("error_type", ""), _negated=True),
                name="runs_run_failed",
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="team",
            field=models.ForeignKey(
                db_index=False,
                editable=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="runs",
                to="runs.team",
            ),
        ),
    ]
