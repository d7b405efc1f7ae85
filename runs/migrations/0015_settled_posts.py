from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """What was told long ago, for the night that deletes it."""

    atomic = False

    dependencies = [("runs", "0014_drawn_webhooks")]

    operations = [
        AddIndexConcurrently(
            "webhookpost",
            models.Index(
                fields=["settled_at"],
                condition=models.Q(("state", "pending"), _negated=True),
                name="runs_webhook_post_settled",
            ),
        ),
    ]
