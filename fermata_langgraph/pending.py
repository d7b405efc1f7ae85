"""Pending writes, in SQL: sealed like everything that the store keeps. Knows nothing of LangGraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from checkpoints import codec
from checkpoints.codec.encoding import pack
from checkpoints.store import Cursor
from checkpoints.store.blobs import Place, sealed, unsealed
from checkpoints.store.rotation import Sealed

# The first to write a task's write wins, so that repeating it does no harm; special channels take the last.
ADD = """
    INSERT INTO fermata_langgraph_pendingwrite (idx, run_id, checkpoint_id, task_id, task_path, channel, body)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (run_id, checkpoint_id, task_id, idx) DO {action}
"""
KEEP = ADD.format(action="NOTHING")
REPLACE = ADD.format(action="UPDATE SET channel = EXCLUDED.channel, body = EXCLUDED.body")
# As live execution applies them.
READ = """
    SELECT idx, task_id, task_path, channel, body FROM fermata_langgraph_pendingwrite
    WHERE run_id = %s AND checkpoint_id = %s
    ORDER BY task_path COLLATE "C", task_id COLLATE "C", idx
"""


@dataclass(frozen=True)
class Write:
    """A value for a channel: `kind` and `data` as LangGraph's serializer makes them. `idx` < 0: a special channel."""

    idx: int
    task_id: str
    task_path: str
    channel: str
    kind: str
    data: bytes


def place_of(run_id: UUID, checkpoint_id: str, task_id: str, idx: int) -> Place:
    return Place(run_id, pack(["langgraph write", run_id.bytes, checkpoint_id, task_id, idx]))


SEALED = Sealed(
    table="fermata_langgraph_pendingwrite", key=("run_id", "checkpoint_id", "task_id", "idx"), place=place_of
)


def add(cursor: Cursor, run_id: UUID, checkpoint_id: str, writes: Sequence[Write]) -> None:
    """Raises HoldsCredential."""
    for write in writes:
        place = place_of(run_id, checkpoint_id, write.task_id, write.idx)
        body = sealed(codec.encode((write.kind, write.data), path=f"write to {write.channel}"), place)
        values = (write.idx, run_id, checkpoint_id, write.task_id, write.task_path, write.channel, body)
        cursor.execute(REPLACE if write.idx < 0 else KEEP, values)


def read(cursor: Cursor, run_id: UUID, checkpoint_id: str) -> list[Write]:
    """In the order in which they are applied. Raises Unreadable."""
    cursor.execute(READ, (run_id, checkpoint_id))
    return [_opened(run_id, checkpoint_id, *row) for row in cursor.fetchall()]


def _opened(run_id: UUID, checkpoint_id: str, idx: int, task_id: str, task_path: str, channel: str, body: Any) -> Write:
    what = f"write to {channel}"
    data = unsealed(bytes(body), place_of(run_id, checkpoint_id, task_id, idx), what=what)
    kind, value = codec.decode(data, what=what)
    return Write(idx, task_id, task_path, channel, kind, value)
