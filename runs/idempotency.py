"""The same key and the same request: the first answer, and the work done once."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from runs import strictjson
from runs.errors import RunError
from runs.hooks import Cursor
from runs.models import Agent

KEPT_DAYS = 30

_CLAIM = """
INSERT INTO runs_idempotent_request (agent_id, key, request_hash, status, body) VALUES (%s, %s, %s, 0, '')
ON CONFLICT ON CONSTRAINT runs_idempotent_request_once DO NOTHING RETURNING id
"""
_FIRST = "SELECT request_hash, status, body FROM runs_idempotent_request WHERE agent_id = %s AND key = %s"
_FORGET = "DELETE FROM runs_idempotent_request WHERE at < (SELECT fermata_now()) - %s * interval '1 day'"
_ERASE = """
UPDATE runs_idempotent_request SET body = '{"erased":true}'
WHERE agent_id = %s AND at BETWEEN %s - interval '1 minute' AND %s + interval '1 minute' AND position(%s IN body) > 0
"""
_KEEP = "UPDATE runs_idempotent_request SET status = %s, body = %s WHERE id = %s"


@dataclass(frozen=True)
class Answer:
    """What was answered. `body` is JSON text, sent as it is; `replayed` when it was kept from an earlier request."""

    status: int
    body: str
    replayed: bool = False


@dataclass
class IdempotencyConflict(RunError):
    """The key was used before, for another request."""

    key: str

    def __str__(self) -> str:
        return f"the Idempotency-Key {self.key!r} was used for a different request"


def request_hash(*, method: str, path: str, body: Any) -> bytes:
    """SHA-256 of what was asked. The order of keys and white space do not count; every digit of a number does."""
    return hashlib.sha256(f"{method} {path}\n{strictjson.dumps(body)}".encode()).digest()


def forget_old() -> int:
    """Delete the answers that are older than `KEPT_DAYS`; how many."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [KEPT_DAYS])
        forgotten: int = cursor.rowcount
    return forgotten


def erase_answers(cursor: Cursor, *, agent_id: UUID, run_id: UUID, since: datetime, until: datetime) -> None:
    """Erase the answers that name a run and were kept while it lived. A request that comes again still does nothing."""
    cursor.execute(_ERASE, [agent_id, since, until, str(run_id)])


@transaction.atomic(durable=True)
def idempotent(*, agent: Agent, key: str, request_hash: bytes, work: Callable[[], Answer]) -> Answer:
    """Do `work` and keep its answer in one transaction, or give the answer that was kept.

    An exception from `work` undoes everything, the claim on the key too, so that the request can be sent again.
    Raises `IdempotencyConflict`.
    """
    with connection.cursor() as cursor:
        # The unique index is the gate: a second request waits here until the first commits or gives up.
        cursor.execute(_CLAIM, [agent.pk, key, request_hash])
        claimed = cursor.fetchone()
        if claimed is None:
            cursor.execute(_FIRST, [agent.pk, key])
            first_hash, status, body = cursor.fetchone()
            if bytes(first_hash) != request_hash:
                raise IdempotencyConflict(key)
            return Answer(status=status, body=body, replayed=True)
        answer = work()
        cursor.execute(_KEEP, [answer.status, answer.body, claimed[0]])
        return answer
