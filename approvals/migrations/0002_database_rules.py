"""What the database itself holds: the moves of approvals and grants, what never changes, that every outcome is told.

tests/approvals/test_states.py compares the two tables of moves with those of approvals/states.py.
"""

from django.db import migrations

TRANSITIONS = """
CREATE FUNCTION approvals_check_approval_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (
        OLD.status IN ('pending', 'held')
        AND (OLD.status || '>' || NEW.status) <> ALL (ARRAY['pending>pending', 'held>held'])
    ) THEN
        RAISE EXCEPTION 'an approval cannot go from % to %', OLD.status, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'approvals_approval_transition';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_approval_transition BEFORE UPDATE OF status ON approvals_approval
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION approvals_check_approval_transition();

CREATE FUNCTION approvals_check_grant_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.status || '>' || NEW.status) <> ALL (ARRAY[
        'ready>spent', 'ready>revoked', 'ready>void', 'ready>lapsed',
        'spent>succeeded', 'spent>failed', 'spent>in_doubt',
        'in_doubt>succeeded', 'in_doubt>failed', 'in_doubt>spent', 'in_doubt>lapsed'
    ]) THEN
        RAISE EXCEPTION 'a grant cannot go from % to %', OLD.status, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'approvals_grant_transition';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER approvals_grant_transition BEFORE UPDATE OF status ON approvals_grant
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION approvals_check_grant_transition();
"""

# What was asked stays as it was asked, and what is decided stays decided.
FROZEN = """
CREATE FUNCTION approvals_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % never change', TG_TABLE_NAME
        USING ERRCODE = 'check_violation', CONSTRAINT = TG_TABLE_NAME || '_frozen';
END $$;
CREATE TRIGGER approvals_approval_frozen
    BEFORE UPDATE OF team_id, agent_id, run_id, kind, turn, key, tool, tool_version, target, snapshot_digest, title,
        description, allowed, args_schema, asked, created_at, supersedes_id ON approvals_approval
    FOR EACH ROW EXECUTE FUNCTION approvals_refuse_change();
CREATE TRIGGER approvals_revision_frozen BEFORE UPDATE ON approvals_revision
    FOR EACH ROW EXECUTE FUNCTION approvals_refuse_change();
CREATE TRIGGER approvals_decision_frozen BEFORE UPDATE ON approvals_decision
    FOR EACH ROW EXECUTE FUNCTION approvals_refuse_change();
CREATE TRIGGER approvals_policyversion_frozen BEFORE UPDATE ON approvals_policyversion
    FOR EACH ROW EXECUTE FUNCTION approvals_refuse_change();
CREATE TRIGGER approvals_automatic_rule_frozen
    BEFORE UPDATE OF team_id, name, agents, tools, condition, "window", max_count, sum_of, max_sum, ends_at
    ON approvals_automatic_rule
    FOR EACH ROW EXECUTE FUNCTION approvals_refuse_change();
CREATE TRIGGER approvals_grant_frozen BEFORE UPDATE OF action, args, expires_at, created_at ON approvals_grant
    FOR EACH ROW EXECUTE FUNCTION approvals_refuse_change();
"""

# Looked at when the transaction commits: nothing is settled without a decision that says the same, a grant where one is
# due, and an event in the audit trail.
TOLD = """
CREATE FUNCTION approvals_check_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM approvals_decision WHERE approval_id = NEW.id AND outcome = NEW.status) THEN
        RAISE EXCEPTION 'approval % is % without that decision', NEW.id, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'approvals_approval_has_its_decision';
    END IF;
    IF NEW.kind = 'action' AND (NEW.status IN ('approved', 'edited')) IS DISTINCT FROM
        EXISTS (SELECT 1 FROM approvals_grant WHERE approval_id = NEW.id AND action = NEW.action AND args = NEW.args)
    THEN
        RAISE EXCEPTION 'approval % is % with the wrong grant', NEW.id, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'approvals_approval_has_its_grant';
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM approvals_auditevent
        WHERE chain = 'approval:' || NEW.id
          AND type IN ('approval.settled', 'approval.expired', 'approval.cancelled', 'approval.superseded')
    ) THEN
        RAISE EXCEPTION 'approval % is % without an event', NEW.id, NEW.status
            USING ERRCODE = 'check_violation', CONSTRAINT = 'approvals_approval_has_its_event';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER approvals_approval_told AFTER INSERT OR UPDATE OF status ON approvals_approval
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.status NOT IN ('pending', 'held'))
    EXECUTE FUNCTION approvals_check_told();
"""

# Since when somebody is in a group, whichever way they got there.
POOL_ENTRIES = """
CREATE FUNCTION approvals_keep_pool_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM approvals_pool_entry WHERE user_id = OLD.user_id AND group_id = OLD.group_id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO approvals_pool_entry (user_id, group_id, since) VALUES (NEW.user_id, NEW.group_id, fermata_now());
    END IF;
    RETURN NULL;
END $$;
INSERT INTO approvals_pool_entry (user_id, group_id, since)
    SELECT user_id, group_id, fermata_now() FROM auth_user_groups;
CREATE TRIGGER approvals_pool_entries AFTER INSERT OR UPDATE OR DELETE ON auth_user_groups
    FOR EACH ROW EXECUTE FUNCTION approvals_keep_pool_entries();
"""

# One bitmap for each place that a search looks into. `icontains` compares in upper case.
SEARCH = """
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX approvals_search ON approvals_approval USING gin (
    upper(title) gin_trgm_ops, upper(description) gin_trgm_ops, upper(args) gin_trgm_ops, upper(tool) gin_trgm_ops
);
CREATE INDEX approvals_key ON approvals_approval (key);
"""


def catch_all(apps, schema_editor):
    """Until somebody says otherwise, one reviewer of the team decides about everything."""
    team = apps.get_model("runs", "Team").objects.filter(name="Default").first()
    if team is not None:
        policy = apps.get_model("approvals", "Policy").objects.create(team=team, name="Everything")
        policy.versions.create(number=1, quorum='[{"count":1,"group":null}]', allow_automatic=True)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0001_initial"), ("runs", "0002_database_rules")]

    operations = [
        migrations.RunSQL(
            TRANSITIONS,
            """
            DROP TRIGGER approvals_approval_transition ON approvals_approval;
            DROP TRIGGER approvals_grant_transition ON approvals_grant;
            DROP FUNCTION approvals_check_approval_transition(), approvals_check_grant_transition();
            """,
        ),
        migrations.RunSQL(
            FROZEN,
            """
            DROP TRIGGER approvals_approval_frozen ON approvals_approval;
            DROP TRIGGER approvals_revision_frozen ON approvals_revision;
            DROP TRIGGER approvals_decision_frozen ON approvals_decision;
            DROP TRIGGER approvals_policyversion_frozen ON approvals_policyversion;
            DROP TRIGGER approvals_automatic_rule_frozen ON approvals_automatic_rule;
            DROP TRIGGER approvals_grant_frozen ON approvals_grant;
            DROP FUNCTION approvals_refuse_change();
            """,
        ),
        migrations.RunSQL(
            TOLD,
            "DROP TRIGGER approvals_approval_told ON approvals_approval; DROP FUNCTION approvals_check_told()",
        ),
        migrations.RunSQL(
            POOL_ENTRIES,
            """
            DROP TRIGGER approvals_pool_entries ON auth_user_groups;
            DROP FUNCTION approvals_keep_pool_entries();
            """,
        ),
        migrations.RunSQL(SEARCH, "DROP INDEX approvals_search, approvals_key"),
        migrations.RunPython(catch_all, migrations.RunPython.noop),
    ]
