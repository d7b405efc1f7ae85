from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_live")]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="on_credentials",
            field=models.CharField(
                choices=[("refuse", "Refuse"), ("redact", "Redact")], default="refuse", max_length=6
            ),
        ),
        migrations.AddConstraint(
            model_name="agent",
            constraint=models.CheckConstraint(
                condition=models.Q(("on_credentials__in", ["refuse", "redact"])), name="runs_agent_on_credentials_known"
            ),
        ),
    ]
