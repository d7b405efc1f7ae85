import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Checkpoint",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "seq", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("epoch", models.BigIntegerField()),
                (
                    "size",
                    models.BigIntegerField(
                        help_text="Bytes of state, history, position and pending before compression."
                    ),
                ),
                ("seq", models.IntegerField()),
                ("turn", models.IntegerField()),
                ("schema", models.IntegerField()),
                ("history_length", models.IntegerField()),
                ("run_id", models.UUIDField()),
                ("digest", models.BinaryField(help_text="SHA-256 over everything in the snapshot but `at`.")),
                ("workflow", models.TextField()),
                ("phase", models.TextField()),
                (
                    "reason",
                    models.TextField(
                        choices=[
                            ("start", "Start"),
                            ("phase", "Phase"),
                            ("gate", "Gate"),
                            ("external", "External"),
                            ("fork", "Fork"),
                            ("end", "End"),
                        ]
                    ),
                ),
                (
                    "manifest",
                    models.BinaryField(help_text="msgpack: state part name to the seq that introduced it."),
                ),
                ("body", models.BinaryField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("epoch__gte", 0),
                            ("history_length__gte", 0),
                            ("seq__gte", 0),
                            ("size__gte", 0),
                            ("turn__gte", 0),
                        ),
                        name="checkpoints_checkpoint_not_negative",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason__in", ["start", "phase", "gate", "external", "fork", "end"])),
                        name="checkpoints_checkpoint_reason",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HistoryChunk",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id", "first", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("first", models.IntegerField()),
                ("count", models.IntegerField()),
                ("seq", models.IntegerField()),
                ("run_id", models.UUIDField()),
                ("body", models.BinaryField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("count__gt", 0), ("first__gte", 0), ("seq__gte", 0)),
                        name="checkpoints_historychunk_not_empty",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StatePart",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id",
                        "name",
                        "introduced_seq",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("introduced_seq", models.IntegerField()),
                ("run_id", models.UUIDField()),
                ("name", models.TextField()),
                ("body", models.BinaryField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("introduced_seq__gte", 0)),
                        name="checkpoints_statepart_not_negative",
                    )
                ],
            },
        ),
        # Bodies come compressed, perhaps encrypted: to compress them again only costs time.
        migrations.RunSQL(
            sql=[
                "ALTER TABLE checkpoints_checkpoint ALTER COLUMN body SET STORAGE EXTERNAL",
                "ALTER TABLE checkpoints_statepart ALTER COLUMN body SET STORAGE EXTERNAL",
                "ALTER TABLE checkpoints_historychunk ALTER COLUMN body SET STORAGE EXTERNAL",
            ],
            reverse_sql=migrations.RunSQL.noop,
        ),
    ]
