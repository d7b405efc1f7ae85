"""A throw-away database beside the configured one: its clock can be moved, and it has a ledger of calls."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db import connection

from fermata.embedded.urls import database_url
from runs.clock import database_now
from runs.engine.connection import engine_connection

SET_UP = """
CREATE TABLE certify_clock (ahead interval NOT NULL);
INSERT INTO certify_clock VALUES ('0');
CREATE OR REPLACE FUNCTION fermata_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT clock_timestamp() + (SELECT ahead FROM certify_clock)';
CREATE TABLE certify_call (idempotency_key text NOT NULL);
CREATE INDEX certify_call_by_key ON certify_call (idempotency_key);
"""
NOTE = "INSERT INTO certify_call VALUES (%s)"
COUNT = "SELECT idempotency_key, count(*) FROM certify_call WHERE idempotency_key = ANY(%s) GROUP BY 1"


@contextmanager
def throw_away_database() -> Iterator[str]:
    """Create it, use it in this process, and drop it at the end; its URL, for other processes."""
    configured = connection.settings_dict["NAME"]
    connection.settings_dict["TEST"]["NAME"] = f"{configured}_certify"
    name = connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        with connection.cursor() as cursor:
            cursor.execute(SET_UP)
        yield urlsplit(os.environ.get("DATABASE_URL") or database_url())._replace(path=f"/{name}").geturl()
    finally:
        engine_connection().close()
        connection.creation.destroy_test_db(configured, verbosity=0)


def move_clock(by: timedelta) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE certify_clock SET ahead = ahead + make_interval(secs => %s)", (by.total_seconds(),))


def move_clock_to(when: datetime) -> None:
    """Just past `when`, unless that is over."""
    move_clock(max(when - database_now(), timedelta(0)) + timedelta(seconds=1))


def note_call(idempotency_key: str) -> None:
    """Write the call into the ledger, which stands for the world outside: whatever happens next, it happened."""
    engine_connection().execute(NOTE, (idempotency_key,))


def count_calls(idempotency_keys: Iterable[str]) -> Counter[str]:
    rows = engine_connection().execute(COUNT, (list(idempotency_keys),)).fetchall()
    return Counter(dict(rows))
