"""What the database itself holds of the audit trail: how an event is appended, and that nothing else happens to it.

The triggers are ENABLE ALWAYS: `SET session_replication_role = replica` does not switch them off.
"""

from django.db import migrations

# The advisory lock, unlike a row with the chain's head, needs no right to update anything, and leaves no dead rows.
# approvals/audit/hashing.py computes the same hash; tests/approvals/audit/test_append.py compares the two.
APPEND = """
CREATE FUNCTION approvals_audit_text(value text) RETURNS bytea
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS
    $$ SELECT int4send(octet_length(convert_to(value, 'UTF8'))) || convert_to(value, 'UTF8') $$;

CREATE FUNCTION approvals_audit_append(
    in_chain text, in_type text, in_actor text, in_team bigint, in_salt bytea, in_body text, in_person bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    new_n bigint;
    new_prev bytea;
    new_at timestamptz;
    new_commit bytea := sha256(in_salt || convert_to(in_body, 'UTF8'));
    new_id bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(in_chain, 0));
    -- A statement of its own: its snapshot is taken after the lock, so it sees what the last holder committed.
    SELECT n + 1, hash INTO new_n, new_prev FROM approvals_auditevent WHERE chain = in_chain ORDER BY n DESC LIMIT 1;
    IF NOT FOUND THEN
        new_n := 1;
        new_prev := decode(repeat('00', 32), 'hex');
    END IF;
    new_at := fermata_now();
    INSERT INTO approvals_auditevent (chain, n, at, team_id, actor, type, body_commit, prev, hash)
    VALUES (
        in_chain, new_n, new_at, in_team, in_actor, in_type, new_commit, new_prev,
        sha256(
            'fermata.audit.event.1'::bytea || approvals_audit_text(in_chain) || int8send(new_n)
            || int8send((extract(epoch FROM new_at) * 1000000)::bigint) || int8send(coalesce(in_team, 0))
            || approvals_audit_text(in_actor) || approvals_audit_text(in_type) || new_commit || new_prev
        )
    ) RETURNING id INTO new_id;
    INSERT INTO approvals_auditbody (event_id, salt, body, person_id) VALUES (new_id, in_salt, in_body, in_person);
    INSERT INTO approvals_auditleaf (event_id, no) VALUES (new_id, NULL);
END $$;
"""

DROP_APPEND = """
DROP FUNCTION approvals_audit_append(text, text, text, bigint, bytea, text, bigint);
DROP FUNCTION approvals_audit_text(text);
"""

REFUSALS = """
CREATE FUNCTION approvals_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on % is forbidden: the audit trail only grows', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE FUNCTION approvals_audit_refuse_unless_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM approvals_auditerasure WHERE event_id = OLD.event_id) THEN
        RAISE EXCEPTION 'the body of event % can only be deleted by an erasure that is itself an event', OLD.event_id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END $$;

CREATE FUNCTION approvals_audit_refuse_unless_numbering() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.no IS NOT NULL OR NEW.event_id <> OLD.event_id THEN
        RAISE EXCEPTION 'the leaf of event % is sealed', OLD.event_id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
"""

DROP_REFUSALS = """
DROP FUNCTION approvals_audit_refuse();
DROP FUNCTION approvals_audit_refuse_unless_erased();
DROP FUNCTION approvals_audit_refuse_unless_numbering();
"""

REFUSE = "approvals_audit_refuse"
# table, trigger, when, function
TRIGGERS = (
    ("auditevent", "unchanged", "UPDATE OR DELETE", REFUSE),
    ("auditerasure", "unchanged", "UPDATE OR DELETE", REFUSE),
    ("auditseal", "unchanged", "UPDATE OR DELETE", REFUSE),
    ("auditbody", "unchanged", "UPDATE", REFUSE),
    ("auditbody", "erased", "DELETE", f"{REFUSE}_unless_erased"),
    ("auditleaf", "numbered", "UPDATE", f"{REFUSE}_unless_numbering"),
    ("auditleaf", "kept", "DELETE", REFUSE),
)
TABLES = ("auditevent", "auditbody", "auditerasure", "auditleaf", "auditseal")


def create_trigger(table: str, name: str, when: str, each: str, function: str) -> migrations.RunSQL:
    name = f"approvals_{table}_{name}"
    return migrations.RunSQL(
        f"CREATE TRIGGER {name} BEFORE {when} ON approvals_{table} FOR EACH {each} EXECUTE FUNCTION {function}();"
        f"ALTER TABLE approvals_{table} ENABLE ALWAYS TRIGGER {name}",
        f"DROP TRIGGER {name} ON approvals_{table}",
    )


class Migration(migrations.Migration):
    dependencies = [("approvals", "0002_database_rules"), ("runs", "0002_database_rules")]

    operations = [
        migrations.RunSQL(APPEND, DROP_APPEND),
        migrations.RunSQL(REFUSALS, DROP_REFUSALS),
        *(create_trigger(table, name, when, "ROW", function) for table, name, when, function in TRIGGERS),
        *(create_trigger(table, "whole", "TRUNCATE", "STATEMENT", REFUSE) for table in TABLES),
    ]
