from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="PendingWrite",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "run_id",
                        "checkpoint_id",
                        "task_id",
                        "idx",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("idx", models.IntegerField(help_text="Negative for LangGraph's special channels.")),
                ("run_id", models.UUIDField()),
                ("checkpoint_id", models.TextField()),
                ("task_id", models.TextField()),
                ("task_path", models.TextField()),
                ("channel", models.TextField()),
                ("body", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="Thread",
            fields=[
                ("run_id", models.UUIDField(primary_key=True, serialize=False)),
                ("thread_id", models.TextField()),
                ("namespace", models.TextField()),
                ("head_seq", models.IntegerField(db_default=-1)),
                ("version", models.BigIntegerField(db_default=0, help_text="Goes up with every write.")),
                (
                    "writer",
                    models.TextField(db_default="", help_text="The reading that the last write followed."),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("thread_id", "namespace"), name="fermata_langgraph_thread_namespace"
                    )
                ],
            },
        ),
    ]
