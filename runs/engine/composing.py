"""A fence and what is written behind it, as one statement."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Any

from checkpoints.store import Cte

Params = tuple[Any, ...]
Ctes = list[Cte]

COUNT = "SELECT count(*) FROM fence"


def composed(fence: str, params: Params, ctes: Ctes, result: str = COUNT) -> tuple[bytes, Params]:
    """The statement and its parameters. `fence` gives one row or none; `result` reads from it and the CTEs."""
    sql = _statement(fence, tuple((name, body) for name, body, _ in ctes), result)
    return sql, (*params, *chain.from_iterable(values for _, _, values in ctes))


@lru_cache(256)
def _statement(fence: str, ctes: tuple[tuple[str, str], ...], result: str) -> bytes:
    """The same text for the same shape, so that psycopg finds what the server has prepared."""
    return f"WITH fence AS ({fence}){''.join(f', {name} AS ({body})' for name, body in ctes)} {result}".encode()
