"""An event has no foreign key to its team: each took a lock on the team's one row, for which all workers of a team queued.

With two workers that was 40 % of what they got done. Django still protects a team that has events (`on_delete`).

To drop the key locks the events and then the teams, where a vote reads its team first and then writes an event. So it
gives up before anybody's deadlock is looked for (`deadlock_timeout`, a second), and tries again.
"""

from time import sleep
from typing import Any

import django.db.models.deletion
from django.db import OperationalError, migrations, models, transaction

TRIES = 120
KEY = """
    SELECT conname FROM pg_constraint
    WHERE contype = 'f' AND conrelid = 'approvals_auditevent'::regclass AND confrelid = 'runs_team'::regclass
"""
ADD = """
    ALTER TABLE approvals_auditevent ADD CONSTRAINT approvals_auditevent_team FOREIGN KEY (team_id)
    REFERENCES runs_team (id) DEFERRABLE INITIALLY DEFERRED NOT VALID
"""


def drop(apps: Any, schema_editor: Any) -> None:
    connection = schema_editor.connection
    for left in reversed(range(TRIES)):
        try:
            with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '400ms'")
                cursor.execute(KEY)
                for (name,) in cursor.fetchall():
                    cursor.execute(f"ALTER TABLE approvals_auditevent DROP CONSTRAINT {name}")
            return
        except OperationalError:  # somebody has one of the tables
            if not left:
                raise
        sleep(0.5)


def add(apps: Any, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(ADD)
        cursor.execute("ALTER TABLE approvals_auditevent VALIDATE CONSTRAINT approvals_auditevent_team")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("approvals", "0018_cheaper_events")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="auditevent",
                    name="team",
                    field=models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.team",
                    ),
                ),
            ],
            database_operations=[migrations.RunPython(drop, add)],
        ),
    ]
