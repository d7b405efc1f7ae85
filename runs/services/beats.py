"""Signs of life of the processes that are not asked directly."""

from django.db import connection

_NOTE = """
INSERT INTO runs_service_beat (name, at) VALUES (%s, clock_timestamp())
ON CONFLICT (name) DO UPDATE SET at = excluded.at
"""


def note_alive(*, name: str) -> None:
    """Say that a process of kind `name` (`worker`, `beat`) is there now."""
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [name])
