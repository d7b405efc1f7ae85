"""Time. Deadlines are compared by the database's clock, `fermata_now()`; this module only reads it."""

from datetime import datetime

from django.db import connection
from django.db.models import DateTimeField, Func


class DatabaseNow(Func):
    """Now, by the database's clock, in a query of the ORM."""

    template = "(SELECT fermata_now())"
    output_field = DateTimeField()


def database_now() -> datetime:
    """Now, by the database's clock (aware, UTC). After a lock is held it is later than the lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT fermata_now()")
        now: datetime = cursor.fetchone()[0]
    return now
