"""What was asked and decided never changes, but for one thing: with its run, it can be erased."""

from django.db import migrations

# `CREATE OR REPLACE` locks no table. The columns that may become blank, and what blank is, are those of
# approvals/services/erasing.py. That a run is erased has to stand in the trail, which only grows: `erased_at` alone can
# be set by whoever may write runs.
REFUSE = """
CREATE OR REPLACE FUNCTION approvals_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_now jsonb := to_jsonb(NEW);
BEGIN
    IF TG_TABLE_NAME IN ('approvals_approval', 'approvals_revision', 'approvals_decision', 'approvals_grant')
        AND EXISTS (
            SELECT FROM runs_run r JOIN runs_head h ON h.run_id = r.id
            JOIN approvals_auditevent e ON e.chain = 'run:' || r.id AND e.type = 'snapshots.erased'
            WHERE r.erased_at IS NOT NULL AND h.status IN ('completed', 'failed', 'cancelled') AND r.id = coalesce(
                (is_now ->> 'run_id')::uuid,
                (SELECT run_id FROM approvals_approval WHERE id = (is_now ->> 'approval_id')::uuid)
            )
        )
        AND NOT EXISTS (
            SELECT FROM jsonb_each_text(to_jsonb(OLD)) AS was JOIN jsonb_each_text(is_now) AS becomes USING (key)
            WHERE was.value IS DISTINCT FROM becomes.value AND NOT coalesce(CASE key
                WHEN 'title' THEN becomes.value = 'Erased'
                WHEN 'args' THEN becomes.value = '{"erased":true}'
                WHEN 'args_schema' THEN becomes.value = '{}'
                WHEN 'diff' THEN becomes.value = '[]'
                ELSE key IN ('description', 'message', 'outcome') AND becomes.value = ''
            END, false)
        )
    THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION 'rows of % never change', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_TABLE_NAME || '_frozen';
END $$;
"""
REFUSE_ALL = """
CREATE OR REPLACE FUNCTION approvals_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % never change', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_TABLE_NAME || '_frozen';
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0014_events_by_type"), ("runs", "0005_run_erased_at")]

    operations = [migrations.RunSQL(REFUSE, REFUSE_ALL)]
