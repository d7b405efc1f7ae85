"""Since when a run is queued: what workers take the oldest by. The time of its last change cannot be in an index, for
that one changes with every checkpoint; this one only with the status, which an index has anyway.
"""

import django.db.models.functions.datetime
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

TRIGGER = """
CREATE FUNCTION runs_head_set_queued_at() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.queued_at := now();
    RETURN NEW;
END $$;
CREATE TRIGGER runs_head_queued BEFORE UPDATE OF status ON runs_head
    FOR EACH ROW WHEN (NEW.status = 'queued' AND OLD.status <> 'queued')
    EXECUTE FUNCTION runs_head_set_queued_at();
UPDATE runs_head SET queued_at = updated_at WHERE status = 'queued';
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0011_personal_tokens")]

    operations = [
        migrations.AddField(
            model_name="runhead",
            name="queued_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                help_text="Since when it is queued, or last was; a trigger sets it.",
            ),
        ),
        migrations.RunSQL(
            TRIGGER, "DROP TRIGGER runs_head_queued ON runs_head; DROP FUNCTION runs_head_set_queued_at()"
        ),
        AddIndexConcurrently(
            model_name="runhead",
            index=models.Index(
                condition=models.Q(("status", "queued")),
                fields=["workflow", "schema", "queued_at"],
                name="runs_head_queue",
            ),
        ),
    ]
