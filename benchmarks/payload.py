"""What the peers store: random, so that compression flatters nobody."""

import base64
import os
from typing import Any

import psycopg

PAYMENTS = "CREATE TABLE IF NOT EXISTS payments (run text NOT NULL)"


def random_text(size: int = 1024) -> str:
    """`size` characters of base64, six bits of chance in each, and nothing that looks like a key."""
    return base64.b64encode(os.urandom(size)).decode()[:size].replace("AIza", "aIza")


def pay(url: str, run: str) -> None:
    """One payment, on a connection of its own: nobody can take it back."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("INSERT INTO payments VALUES (%s)", (run,))


def payments(url: str) -> dict[str, int]:
    """How many payments each run has made."""
    with psycopg.connect(url, autocommit=True) as connection:
        return dict(connection.execute("SELECT run, count(*) FROM payments GROUP BY run").fetchall())


def scalar(url: str, query: Any) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def database_bytes(url: str) -> int:
    return int(scalar(url, "SELECT pg_database_size(current_database())"))
