"""What runs has an index of its own, and what is queued one alone: with both in one, PostgreSQL looked for the oldest queued
run among all that are queued, once it had taken these for none. Made and dropped while everything else goes on.
"""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0018_sound_rows")]

    operations = [
        AddIndexConcurrently(
            model_name="runhead",
            index=models.Index(condition=models.Q(("status", "running")), fields=["run"], name="runs_head_running"),
        ),
        RemoveIndexConcurrently(model_name="runhead", name="runs_head_live"),
    ]
