import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0008_validate_resume_mode")]

    operations = [
        migrations.AddField(
            model_name="build",
            name="since",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
    ]
