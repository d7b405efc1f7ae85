from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_agent_on_credentials")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="erased_at",
            field=models.DateTimeField(blank=True, help_text="When its content was erased.", null=True),
        ),
    ]
