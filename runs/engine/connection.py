"""The engine's own connection: plain psycopg, one per thread, opened when first needed, kept between runs.

Celery closes Django's connection around each task, and the ORM has no place on the hot path. The connection is in
autocommit and carries no session state but prepared statements, so that a transaction pooler may stand between; one
that cannot keep those either wants `FERMATA_PREPARED_STATEMENTS=0`.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, LiteralString

import psycopg
from django.conf import settings
from django.db import connections
from psycopg.abc import Params

from runs.engine import failpoints
from runs.engine.sending import SendingConnection

# The last: whatever stands between has thrown away what was prepared, and a new connection prepares it again.
LOST = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.InvalidSqlStatementName)
CONNECT_SECONDS = 5
PREPARE_AFTER = 5  # executions: a rare statement is not worth a place in the server's cache

# A worker stopped inside a transaction must not block the claim of its run beyond the lease.
BEGIN = "BEGIN; SET LOCAL lock_timeout = '2s'; SET LOCAL idle_in_transaction_session_timeout = '5s'"


class UnsafeDatabase(RuntimeError):
    """The server is set up so that the engine's promises would not hold."""


class Sent:
    """A statement under way."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        self._row: Any = None
        self._error: psycopg.Error | None = None

    def row(self) -> Any:
        """Wait for its end: its row, or None. Raises psycopg's errors; those in `LOST` mean: it may have committed."""
        self._connection.wait(self)
        if self._error is not None:
            raise self._error
        return self._row

    def ended(self, *, row: Any = None, error: psycopg.Error | None = None) -> None:
        """Keep what it came to for whoever asks, as often as they ask."""
        self._row, self._error = row, error


class EngineConnection:
    """A psycopg connection that is opened on demand and replaced when it was lost."""

    def __init__(self) -> None:
        self._connection: SendingConnection | None = None
        self._lose_next_answer = False
        self._sent: deque[Sent] = deque()

    @property
    def under_way(self) -> int:
        """How many statements were sent and not waited for."""
        return len(self._sent)

    def execute(self, query: LiteralString | bytes, params: Params | None = None) -> psycopg.Cursor[Any]:
        """Run one autocommit statement. Raises psycopg's errors; those in `LOST` mean: it may have committed."""
        try:
            cursor = self._open().execute(query, params)
            self._maybe_lose_answer()
            return cursor
        except LOST:
            self.close()
            raise

    def send(self, query: bytes, params: Sequence[Any] = ()) -> Sent:
        """Send one autocommit statement behind those under way. Whatever else uses the connection waits for their end.

        Raises psycopg's errors, as `execute` does.
        """
        try:
            self._opened().send(query, params)
        except (*LOST, KeyboardInterrupt, SystemExit):
            self.close()
            raise
        sent = Sent(self)
        self._sent.append(sent)
        return sent

    def wait(self, last: Sent | None = None) -> None:
        """Wait for the end of what was sent, up to `last`. What went wrong is kept for whoever asks for its row."""
        while self._connection is not None and self._sent and (last is None or last in self._sent):
            sent = self._sent[0]
            try:
                sent.ended(row=self._connection.answer())
                self._maybe_lose_answer()
            except LOST as error:
                self.close(error)
                return
            except psycopg.Error as error:
                sent.ended(error=error)
            except BaseException:  # half an answer may be left
                self.close()
                raise
            self._sent.popleft()
        if self._connection is not None and not self._sent:
            self._connection.end_sending()

    @contextmanager
    def reading(self) -> Iterator[psycopg.Cursor[Any]]:
        """A cursor for several reads, each in a transaction of its own."""
        try:
            with self._open().cursor() as cursor:
                yield cursor
        except LOST:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Cursor[Any]]:
        """A transaction with the engine's time-outs; yields its cursor. Commits, or rolls back on any exception."""
        connection = self._open()
        try:
            with connection.cursor() as cursor:
                cursor.execute(BEGIN)
                yield cursor
                cursor.execute("COMMIT")
                self._maybe_lose_answer()
        except LOST:
            self.close()
            raise
        except BaseException:
            self._roll_back(connection)
            raise

    def close(self, why: psycopg.Error | None = None) -> None:
        """End the connection. Of what was sent on it, nobody knows what became: `why`."""
        for sent in self._sent:
            sent.ended(error=why or psycopg.OperationalError("the connection was closed before the statement ended"))
        self._sent.clear()
        if self._connection is not None:
            with suppress(*LOST):  # it is gone either way
                self._connection.close()
            self._connection = None

    def forget(self) -> None:
        """In a fork, whose socket is its parent's."""
        self._connection = None
        self._sent.clear()

    def cut(self) -> None:
        """For failpoints: the socket dies and libpq does not know, as when a network fails."""
        if self._connection is not None and not self._connection.closed:
            with socket.socket(fileno=os.dup(self._connection.fileno())) as twin:
                twin.shutdown(socket.SHUT_RDWR)

    def lose_next_answer(self) -> None:
        """For failpoints: the next statement commits, and its answer gets lost."""
        self._lose_next_answer = True

    def _maybe_lose_answer(self) -> None:
        if self._lose_next_answer:
            self._lose_next_answer = False
            self.cut()
            raise psycopg.OperationalError("the answer was lost (failpoint)")

    def _roll_back(self, connection: SendingConnection) -> None:
        try:
            connection.roll_back()
        except LOST:
            self.close()

    def _open(self) -> SendingConnection:
        """The connection, with nothing under way."""
        self.wait()
        return self._opened()

    def _opened(self) -> SendingConnection:
        if self._connection is None or self._connection.closed:
            self.close()
            self._connection = connect()
        return self._connection


def connection_parameters() -> dict[str, Any]:
    """What psycopg needs to reach Django's database without Django: autocommit, and time-outs that notice its loss."""
    parameters = connections["default"].get_connection_params()
    for django_only in ("pool", "context", "cursor_factory", "prepare_threshold", "isolation_level"):
        parameters.pop(django_only, None)
    return {
        **parameters,
        "autocommit": True,
        "prepare_threshold": PREPARE_AFTER if settings.FERMATA_PREPARED_STATEMENTS else None,
        "connect_timeout": CONNECT_SECONDS,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
    }


def connect() -> SendingConnection:
    """A new autocommit connection to Django's database. Raises UnsafeDatabase or psycopg.OperationalError."""
    connection = SendingConnection.connect(**connection_parameters())
    row = connection.execute(
        "SELECT current_setting('default_transaction_isolation'), current_setting('synchronous_commit')"
    ).fetchone()
    isolation, synchronous = row or ("unknown", "unknown")
    if isolation != "read committed" or synchronous == "off":
        connection.close()
        raise UnsafeDatabase(
            "the engine needs default_transaction_isolation = 'read committed' and synchronous_commit not 'off'; "
            f"the server has {isolation!r} and {synchronous!r}"
        )
    return connection


def reconnect(connection: EngineConnection, *, give_up_after: float) -> bool:
    """Try to reach the database again for `give_up_after` seconds. False: it stayed away."""
    until = time.monotonic() + give_up_after
    pause = 0.05
    while True:
        try:
            connection.execute("SELECT 1")
        except LOST:
            if time.monotonic() + pause > until:
                return False
            time.sleep(pause)
            pause = min(pause * 2, 1.0)
        else:
            return True


def database_time(connection: EngineConnection) -> datetime:
    """Now, by the database's clock (aware, UTC)."""
    row = connection.execute("SELECT fermata_now()").fetchone()
    if row is None:
        raise AssertionError("a SELECT without FROM gives a row")
    now: datetime = row[0]
    return now.astimezone(UTC)


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.connection = EngineConnection()


_local = _PerThread()


def engine_connection() -> EngineConnection:
    """This thread's connection."""
    return _local.connection


os.register_at_fork(after_in_child=lambda: engine_connection().forget())
failpoints.register("cut", lambda: engine_connection().cut())
failpoints.register("lose", lambda: engine_connection().lose_next_answer())
