"""Since when somebody administers a team. Whoever does already has done so since they joined: no row is written."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0015_settled_posts")]

    operations = [
        migrations.AddField(
            model_name="membership", name="admin_since", field=models.DateTimeField(blank=True, null=True)
        )
    ]
