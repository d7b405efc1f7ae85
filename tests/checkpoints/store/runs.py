"""A run as the store's callers see it: a head in memory and a fence in a table of their own."""

from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID, uuid4

import psycopg
from django.db import connection

from checkpoints.store import Head, Prepared, encode_item, insert, load, prepare

TABLES = ("checkpoints_checkpoint", "checkpoints_statepart", "checkpoints_historychunk")


class Run:
    """Writes checkpoints of one run, one after the other."""

    def __init__(self) -> None:
        self.id: UUID = uuid4()
        self.head: Head | None = None
        self.length = 0

    def prepare(self, state, items=(), **changes) -> Prepared:
        given = {
            "seq": 0 if self.head is None else self.head.seq + 1,
            "epoch": 1,
            "workflow": "refund-agent",
            "schema": 1,
            "phase": "propose",
            "turn": 3,
            "reason": "phase",
            "position": {"step": 1},
            "pending": [],
            "limit": 10_000_000,
        }
        new = [encode_item(item, self.length + index) for index, item in enumerate(items)]
        return prepare(run_id=self.id, head=self.head, state=state, new_history=new, **given | changes)

    def save(self, state, items=(), **changes) -> Prepared:
        prepared = self.prepare(state, items, **changes)
        with connection.cursor() as cursor:
            insert(cursor, prepared)
        self.head = prepared.head
        self.length = prepared.head.history_length
        return prepared

    def load(self, seq=None, **options):
        with connection.cursor() as cursor:
            return load(cursor, run_id=self.id, seq=seq, **options)

    def renamed(self, prepared: Prepared) -> Prepared:
        """The same checkpoint, of another run."""
        return replace(prepared, label=replace(prepared.label, run_id=uuid4()))


def rows(table: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
        return cursor.fetchall()


def all_rows() -> dict[str, list[tuple]]:
    return {table: rows(table) for table in TABLES}


def execute(sql: str, params=()) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


@contextmanager
def engine_connection():
    """A bare psycopg connection to the test database, as the engine keeps one."""
    settings = connection.get_connection_params() | {
        "cursor_factory": psycopg.Cursor,
        "prepare_threshold": None,
    }
    with psycopg.connect(**settings, autocommit=True) as bare:
        yield bare
