"""Emptying the database after a test that committed. Deleting from the touched tables beats truncating all of them.

Rows that migrations put there stay. The append-only triggers, which no session variable can switch off, are disabled
table by table: only a table's owner can do that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import OperationalError, connection
from psycopg.errors import DeadlockDetected

LEFT_ALONE = {"django_migrations", "django_content_type", "auth_permission", "test_clock"}

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
GUARDS = """
    SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE t.tgenabled = 'A' AND NOT t.tgisinternal
"""


class Cleaner:
    """Knows what the migrations left, and deletes everything else."""

    def __init__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(TABLES)
            self._tables = [name for (name,) in cursor.fetchall() if name not in LEFT_ALONE]
            self._seeds = {name: count for name in self._tables if (count := self._rows(cursor, name))}
            for name in self._seeds:
                cursor.execute(f'CREATE TABLE IF NOT EXISTS "seed_{name}" AS SELECT * FROM "{name}"')

    def clean(self) -> None:
        """Delete what tests committed, and put changed seeds back."""
        with connection.cursor() as cursor:
            exists = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM \"{table}\")" for table in self._tables)
            cursor.execute(" UNION ALL ".join(exists))
            touched = [name for (name,) in cursor.fetchall()]
            cursor.execute(GUARDS)
            guards = [(table, trigger) for table, trigger in cursor.fetchall() if table in touched]
            statements = ["SET session_replication_role = replica"]
            statements += [f'ALTER TABLE "{table}" DISABLE TRIGGER "{trigger}"' for table, trigger in guards]
            statements += [f'DELETE FROM "{table}"' for table in touched]
            statements += [f'INSERT INTO "{table}" SELECT * FROM "seed_{table}"' for table in self._seeds]
            statements += [f'ALTER TABLE "{table}" ENABLE ALWAYS TRIGGER "{trigger}"' for table, trigger in guards]
            statements += ["SET session_replication_role = DEFAULT"]
            _until_no_deadlock(lambda: cursor.execute("; ".join(statements)))

    def _rows(self, cursor: Any, table: str) -> int:
        cursor.execute(f'SELECT count(*) FROM "{table}"')
        return cursor.fetchone()[0]


def _until_no_deadlock(act: Callable[[], object]) -> None:
    """A web process of the test may still be writing; whoever loses a deadlock is rolled back and tries again."""
    for _ in range(10):
        try:
            act()
        except OperationalError as error:
            if not isinstance(error.__cause__, DeadlockDetected):
                raise
        else:
            return
    raise AssertionError("the database cannot be cleaned: somebody keeps writing")
