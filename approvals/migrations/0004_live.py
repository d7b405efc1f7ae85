"""Tell whoever listens (`fermata.live`) that an approval, its votes or its grant changed. A notification is the id of
the approval, sent at commit; the same id is sent once for a transaction."""

from django.db import migrations

FORWARDS = """
CREATE FUNCTION approvals_approval_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('fermata_approval', NEW.id::text);
    RETURN NULL;
END $$;
CREATE FUNCTION approvals_part_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('fermata_approval', NEW.approval_id::text);
    RETURN NULL;
END $$;
CREATE TRIGGER approvals_approval_tell AFTER INSERT OR UPDATE ON approvals_approval
    FOR EACH ROW EXECUTE FUNCTION approvals_approval_tell();
CREATE TRIGGER approvals_vote_tell AFTER INSERT OR UPDATE ON approvals_vote
    FOR EACH ROW EXECUTE FUNCTION approvals_part_tell();
CREATE TRIGGER approvals_grant_tell AFTER UPDATE ON approvals_grant
    FOR EACH ROW EXECUTE FUNCTION approvals_part_tell();
"""
BACKWARDS = """
DROP TRIGGER approvals_grant_tell ON approvals_grant;
DROP TRIGGER approvals_vote_tell ON approvals_vote;
DROP TRIGGER approvals_approval_tell ON approvals_approval;
DROP FUNCTION approvals_part_tell();
DROP FUNCTION approvals_approval_tell();
"""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0003_audit_triggers")]

    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
