from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0008_votes_by_token")]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="closes_others",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Its gate takes the first answer: this one's closes the others.",
            ),
        ),
    ]
