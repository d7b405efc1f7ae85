"""Sealing stored bodies anew, in batches that can stop and go on at any point."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from checkpoints.errors import Unreadable
from checkpoints.store.blobs import Place, checkpoint_place, chunk_place, current_header, part_place, resealed
from checkpoints.store.records import Cursor


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """A table with a sealed `column`, unless that is NULL or empty: its key columns, and a row's place."""

    table: str
    key: tuple[str, ...]
    place: Callable[..., Place]
    column: str = "body"


TABLES = [
    Sealed(table="checkpoints_checkpoint", key=("run_id", "seq"), place=checkpoint_place),
    Sealed(table="checkpoints_statepart", key=("run_id", "name", "introduced_seq"), place=part_place),
    Sealed(table="checkpoints_historychunk", key=("run_id", "first", "count"), place=chunk_place),
]


def register(table: Sealed) -> None:
    """Seal this table anew as well: an app above keeps sealed bodies of its own."""
    TABLES.append(table)


def reseal(cursor: Cursor, table: Sealed, after: tuple[Any, ...] | None, limit: int) -> "Batch":
    """Seal the next `limit` rows of `table` whose key comes after `after` and that another key sealed."""
    columns = ", ".join(table.key)
    beyond = f"AND ({columns}) > ({', '.join(['%s'] * len(table.key))})" if after else ""
    header = current_header()
    cursor.execute(
        f"SELECT {columns}, {table.column} FROM {table.table}"  # noqa: S608
        f" WHERE substr({table.column}, 1, %s) <> %s AND {table.column} <> '' {beyond}"
        f" ORDER BY {columns} LIMIT %s FOR NO KEY UPDATE",
        [len(header), header, *(after or ()), limit],
    )
    rows = [(tuple(key), bytes(body)) for *key, body in cursor.fetchall()]
    unreadable = []
    for key, body in rows:
        what = f"{table.table} {' '.join(map(str, key))}" + ("" if table.column == "body" else f" {table.column}")
        try:
            new = resealed(body, table.place(*key), what=what)
        except Unreadable as error:
            unreadable.append(str(error))
            continue
        matches = " AND ".join(f"{column} = %s" for column in table.key)
        cursor.execute(f"UPDATE {table.table} SET {table.column} = %s WHERE {matches}", [new, *key])  # noqa: S608
    return Batch(last=rows[-1][0] if len(rows) == limit else None, count=len(rows), unreadable=tuple(unreadable))


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """`last`: the key to go on after, or None at the table's end."""

    last: tuple[Any, ...] | None
    count: int
    unreadable: tuple[str, ...]
