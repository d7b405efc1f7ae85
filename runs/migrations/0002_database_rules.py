"""What the database itself holds: the clock, the moves between a run's states, and how the head is stored."""

from django.db import migrations

# Production's clock. The test suite replaces it by one that a row can offset.
CLOCK = """
CREATE FUNCTION fermata_now() RETURNS timestamptz
    LANGUAGE sql VOLATILE PARALLEL SAFE AS 'SELECT clock_timestamp()';
"""

# The same table as runs.states.TRANSITIONS; tests/runs/test_states.py compares the two.
TRANSITIONS = """
CREATE FUNCTION runs_head_check_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (OLD.status || '>' || NEW.status) = ANY (ARRAY[
        'queued>running', 'queued>suspended', 'queued>blocked', 'queued>failed', 'queued>cancelled',
        'running>queued', 'running>suspended', 'running>blocked', 'running>completed', 'running>failed',
        'running>cancelled',
        'suspended>queued', 'suspended>blocked', 'suspended>failed', 'suspended>cancelled',
        'blocked>queued', 'blocked>suspended', 'blocked>failed', 'blocked>cancelled',
        'failed>queued'
    ]) THEN
        RAISE EXCEPTION 'a run cannot go from % to %', OLD.status, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'runs_head_transition';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER runs_head_transition BEFORE UPDATE OF status ON runs_head
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION runs_head_check_transition();
"""

# Updated in place many times a second: room on each page keeps the updates HOT.
STORAGE = """
ALTER TABLE runs_head SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
"""


def default_team(apps, schema_editor):
    apps.get_model("runs", "Team").objects.create(name="Default")


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]

    operations = [
        migrations.RunSQL(CLOCK, "DROP FUNCTION fermata_now()"),
        migrations.RunSQL(
            TRANSITIONS,
            "DROP TRIGGER runs_head_transition ON runs_head; DROP FUNCTION runs_head_check_transition()",
        ),
        migrations.RunSQL(STORAGE, "ALTER TABLE runs_head RESET (fillfactor, autovacuum_vacuum_scale_factor)"),
        migrations.RunPython(default_team, migrations.RunPython.noop),
    ]
