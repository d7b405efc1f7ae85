"""The databases that the peers work in: one each, made for this run of the benchmark and dropped at its end."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import unquote, urlencode, urlsplit

import psycopg
from psycopg import sql

from fermata.embedded.urls import database_url

LOCAL = {"127.0.0.1", "localhost", "::1"}


def server_url(name: str) -> str:
    """Database `name` on the server of `DATABASE_URL`, or on the embedded one. A socket's folder goes into the query,
    as all the peers' drivers understand it. Raises ValueError for a server on another machine."""
    parts = urlsplit(os.environ.get("DATABASE_URL") or database_url())
    account, _, address = parts.netloc.rpartition("@")
    if address.startswith("%2F"):
        return f"postgres://{account}@/{name}?{urlencode({'host': unquote(address)})}"
    if parts.hostname not in LOCAL:
        raise ValueError(f"the benchmark loads the server on purpose: {parts.hostname} is not this machine")
    return f"postgres://{parts.netloc}/{name}"


def django_url(url: str) -> str:
    """The same, as Django's settings read it."""
    parts = urlsplit(url)
    if not parts.query:
        return url
    folder = urlencode({"": unquote(parts.query.partition("=")[2])})[1:]
    return f"postgres://{parts.netloc}{folder}{parts.path}"


@contextmanager
def databases(names: Sequence[str]) -> Iterator[dict[str, str]]:
    """A new database for each name, as URLs."""
    full = {name: f"fermata_benchmark_{os.getpid()}_{name}" for name in names}
    with psycopg.connect(server_url("postgres"), autocommit=True) as connection:
        try:
            for database in full.values():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
            yield {name: server_url(database) for name, database in full.items()}
        finally:
            for database in full.values():
                connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))


def server_version() -> str:
    with psycopg.connect(server_url("postgres"), autocommit=True) as connection:
        row = connection.execute(
            "SELECT current_setting('server_version') || ', fsync ' || current_setting('fsync')"
            " || ', synchronous_commit ' || current_setting('synchronous_commit')"
        ).fetchone()
    return str(row[0]) if row else "unknown"
