from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0007_held_never_expires"),
    ]

    operations = [
        migrations.AddField(
            model_name="vote",
            name="by_token",
            field=models.BooleanField(db_default=False, default=False, help_text="A personal token voted."),
        ),
    ]
