"""A held vote was in time: an approval goes back to pending before it can expire."""

from django.db import migrations

FUNCTION = """
CREATE OR REPLACE FUNCTION approvals_check_approval_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (
        OLD.status IN ('pending', 'held')
        AND (OLD.status || '>' || NEW.status) <> ALL (ARRAY[{refused}])
    ) THEN
        RAISE EXCEPTION 'an approval cannot go from % to %', OLD.status, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'approvals_approval_transition';
    END IF;
    RETURN NEW;
END $$;
"""
BEFORE = "'pending>pending', 'held>held'"


class Migration(migrations.Migration):
    dependencies = [("approvals", "0006_audit_anchored")]

    operations = [
        migrations.RunSQL(
            FUNCTION.format(refused=f"{BEFORE}, 'held>expired'"), reverse_sql=FUNCTION.format(refused=BEFORE)
        )
    ]
