import datetime

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0010_step_constraint"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PersonalToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(help_text="What it is for, in the person's words.", max_length=80)),
                ("prefix", models.CharField(max_length=16, unique=True)),
                ("digest", models.BinaryField(max_length=32)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(choices=[("read", "Read"), ("vote", "Vote")], max_length=8),
                        size=None,
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="personal_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "runs_personal_token",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("expires_at__gt", models.F("created_at")),
                            (
                                "expires_at__lte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("created_at"), "+", models.Value(datetime.timedelta(days=30))
                                ),
                            ),
                        ),
                        name="runs_personal_token_ends_soon",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("scopes__contained_by", ["read", "vote"]), ("scopes__contains", ["read"])),
                        name="runs_personal_token_scopes_known",
                    ),
                ],
            },
        ),
    ]
