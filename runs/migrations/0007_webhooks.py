import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0006_credentials"),
    ]

    operations = [
        migrations.CreateModel(
            name="Webhook",
            fields=[
                (
                    "agent",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="webhook",
                        serialize=False,
                        to="runs.agent",
                    ),
                ),
                ("url", models.CharField(max_length=2000)),
                ("secret", models.BinaryField(help_text="What signs the posts.")),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("verified_at", models.DateTimeField(blank=True, null=True)),
                ("gone_at", models.DateTimeField(blank=True, help_text="When the receiver answered 410.", null=True)),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                ("failures", models.PositiveIntegerField(default=0, help_text="In a row.")),
                ("last_error", models.CharField(blank=True, default="", max_length=300)),
                ("rests_until", models.DateTimeField(blank=True, help_text="No attempt before.", null=True)),
                ("claim", models.BigIntegerField(default=0)),
                ("claimed_until", models.DateTimeField(blank=True, help_text="Somebody is at an attempt.", null=True)),
                ("rung_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "runs_webhook",
            },
        ),
        migrations.CreateModel(
            name="WebhookPost",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4,
                        editable=False,
                        help_text="The header webhook-id.",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("sequence", models.PositiveIntegerField()),
                ("type", models.CharField(max_length=40)),
                ("checkpoint", models.IntegerField(help_text="The run's newest, when this was written.")),
                ("created_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("delivered", "Delivered"),
                            ("superseded", "Superseded"),
                            ("given_up", "Given Up"),
                        ],
                        default="pending",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField()),
                ("gives_up_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(blank=True, null=True)),
                ("last_error", models.CharField(blank=True, default="", max_length=300)),
            ],
            options={
                "db_table": "runs_webhook_post",
            },
        ),
        migrations.RemoveConstraint(
            model_name="run",
            name="runs_run_resume_mode_known",
        ),
        migrations.AlterField(
            model_name="run",
            name="resume_mode",
            field=models.CharField(
                choices=[("hosted", "Hosted"), ("workflow", "Workflow"), ("poll", "Poll"), ("webhook", "Webhook")],
                default="hosted",
                max_length=8,
            ),
        ),
        # Every old row satisfies it, so nobody waits for a look at them all: the next migration has that, without a lock.
        AddConstraintNotValid(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(("resume_mode__in", ["hosted", "workflow", "poll", "webhook"])),
                name="runs_run_resume_mode_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhook",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("failing_since__isnull", True), ("failures", 0)),
                    models.Q(("failing_since__isnull", False), ("failures__gt", 0)),
                    _connector="OR",
                ),
                name="runs_webhook_fails_since",
            ),
        ),
        migrations.AddField(
            model_name="webhookpost",
            name="agent",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="runs.agent"
            ),
        ),
        migrations.AddField(
            model_name="webhookpost",
            name="run",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="webhook_posts", to="runs.run"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookpost",
            index=models.Index(
                condition=models.Q(("state", "pending")),
                fields=["agent", "next_attempt_at"],
                name="runs_webhook_post_due",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookpost",
            index=models.Index(
                condition=models.Q(("state__in", ("pending", "given_up"))),
                fields=["created_at"],
                name="runs_webhook_post_untold",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookpost",
            constraint=models.UniqueConstraint(fields=("run", "sequence"), name="runs_webhook_post_in_sequence"),
        ),
        migrations.AddConstraint(
            model_name="webhookpost",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "pending")), fields=("run",), name="runs_webhook_post_one_pending"
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookpost",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["pending", "delivered", "superseded", "given_up"])),
                name="runs_webhook_post_state_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookpost",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("settled_at__isnull", True), ("state", "pending")),
                    models.Q(models.Q(("state", "pending"), _negated=True), ("settled_at__isnull", False)),
                    _connector="OR",
                ),
                name="runs_webhook_post_settled_has_a_time",
            ),
        ),
    ]
