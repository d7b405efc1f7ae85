"""Time. Deadlines are compared by the database's clock, `fermata_now()`; this module only reads it."""

from datetime import datetime

from django.db import connection


def database_now() -> datetime:
    """Now, by the database's clock (aware, UTC). After a lock is held it is later than the lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT fermata_now()")
        return cursor.fetchone()[0]
