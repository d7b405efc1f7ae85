"""Tell whoever listens (`fermata.live`) that a run is somewhere else now. In the database, so that nobody forgets to.

A notification is the run's id, sent at commit. Going back to the queue between two slices is not news.
"""

from django.db import migrations

FORWARDS = """
CREATE FUNCTION runs_head_tell() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('fermata_run', NEW.run_id::text);
    RETURN NULL;
END $$;
CREATE TRIGGER runs_head_tell_new AFTER INSERT ON runs_head FOR EACH ROW EXECUTE FUNCTION runs_head_tell();
CREATE TRIGGER runs_head_tell_moved AFTER UPDATE OF status ON runs_head
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status AND NOT (OLD.status = 'running' AND NEW.status = 'queued'))
    EXECUTE FUNCTION runs_head_tell();
"""
BACKWARDS = """
DROP TRIGGER runs_head_tell_moved ON runs_head;
DROP TRIGGER runs_head_tell_new ON runs_head;
DROP FUNCTION runs_head_tell();
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_database_rules")]

    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
