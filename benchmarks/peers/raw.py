"""Raw PostgreSQL: what one durable write costs on this server, and nothing else."""

import time

import psycopg

from benchmarks.payload import database_bytes, random_text
from benchmarks.peers import WARM_UP

TABLE = "CREATE TABLE IF NOT EXISTS raw_{name} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL)"


def steps(url: str, count: int) -> dict[str, float]:
    """Milliseconds per autocommit INSERT of 1 kB."""
    _insert(url, "steps", WARM_UP)
    return {"ms": _insert(url, "steps", count) / count * 1000}


def growth(url: str, turns: int) -> dict[str, float]:
    """Bytes per turn, the primary key's index included."""
    before = database_bytes(url)
    _insert(url, "growth", turns)
    return {"bytes": (database_bytes(url) - before) / turns}


def _insert(url: str, name: str, count: int) -> float:
    """The seconds that so many took, on a connection that has its statement prepared."""
    bodies = [random_text() for _ in range(count)]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(TABLE.format(name=name))
        query = f"INSERT INTO raw_{name} (body) VALUES (%s)"
        connection.prepare_threshold = 0
        began = time.perf_counter()
        for body in bodies:
            connection.execute(query, (body,))
        return time.perf_counter() - began
