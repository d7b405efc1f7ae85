from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_webhooks")]

    operations = [ValidateConstraint(model_name="run", name="runs_run_resume_mode_known")]
