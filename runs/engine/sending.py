"""A connection that can send a statement now and wait for its end later."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import psycopg
from psycopg.abc import Params, PQGen, QueryNoTemplate
from psycopg.waiting import Ready, Wait

T = TypeVar("T")


class SendingConnection(psycopg.Connection[Any]):
    """psycopg runs each statement as a generator that `wait` drives: one that stops to read has sent all it had to."""

    _sends = False
    _rest: PQGen[Any] | None = None

    def send(self, query: QueryNoTemplate, params: Params | None = None) -> psycopg.Cursor[Any]:
        """Send a statement; its cursor has a result, and its errors are raised, once `finish` has been called.

        Nothing else may use the connection before that. A statement that does not go out at once is waited for here.
        """
        self._sends = True
        try:
            return self.execute(query, params)
        finally:
            self._sends = False

    def finish(self) -> None:
        """Wait for the statement that was sent, if one was. Raises psycopg's errors."""
        rest, self._rest = self._rest, None
        if rest is not None:
            with self.lock:
                self.wait(rest)

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        if not self._sends:
            return super().wait(gen, *args, **kwargs)
        try:
            wanted = next(gen)
        except StopIteration as stop:
            result: T = stop.value
            return result
        rest = _resumed(gen, wanted)
        if wanted != Wait.R:
            return super().wait(rest, *args, **kwargs)
        self._rest = rest
        return None  # type: ignore[return-value]  # `execute` has no use for it


def _resumed(gen: PQGen[T], wanted: Wait) -> Generator[Wait, Ready | int, T]:
    """`gen`, from where it waits for `wanted`."""
    while True:
        ready = yield wanted
        try:
            wanted = gen.send(ready)
        except StopIteration as stop:
            result: T = stop.value
            return result
