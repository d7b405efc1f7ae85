"""Threads and their checkpoints, in SQL. Knows nothing of LangGraph.

Whoever reads a thread gets a `Reading`. A write names the reading that it follows, and is refused if anybody else has
written since: whoever writes first is the thread's writer until somebody reads it anew and writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4, uuid5

from checkpoints.models import Reason
from checkpoints.store import Cursor, Head, insert, load, prepare
from checkpoints.store.retention import delete_unneeded_parts
from fermata_langgraph.errors import ConcurrentWriter

_THREADS = UUID("6a7c0a52-6d0b-5a0e-9d1f-3f1f6e0f7d10")

ADD = """
    INSERT INTO fermata_langgraph_thread (run_id, thread_id, namespace) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING
"""
VERSION = "SELECT version FROM fermata_langgraph_thread WHERE run_id = %s"
FOLLOW = """
    UPDATE fermata_langgraph_thread SET version = version + 1, writer = %s, head_seq = head_seq + %s
    WHERE run_id = %s AND (writer = %s OR version = %s)
    RETURNING head_seq
"""
EXTEND = """
    UPDATE fermata_langgraph_thread SET version = version + 1, writer = '', head_seq = head_seq + 1
    WHERE run_id = %s
    RETURNING head_seq
"""
NEWEST_WRITTEN = "SELECT phase FROM checkpoints_checkpoint WHERE run_id = %s ORDER BY seq DESC LIMIT 1"
# LangGraph's ids ascend with time. One that was saved twice counts as it was saved last.
FIND = """
    SELECT seq FROM checkpoints_checkpoint WHERE run_id = %s AND (phase = %s OR %s)
    ORDER BY phase COLLATE "C" DESC, seq DESC LIMIT 1
"""
LIST = """
    SELECT DISTINCT ON (c.phase COLLATE "C", c.run_id) t.thread_id, t.namespace, c.run_id, c.phase, c.seq
    FROM fermata_langgraph_thread t JOIN checkpoints_checkpoint c ON c.run_id = t.run_id
    WHERE (t.thread_id = %s OR %s) AND (t.namespace = %s OR %s) AND (c.phase = %s OR %s)
      AND (c.phase COLLATE "C" < %s OR %s)
    ORDER BY c.phase COLLATE "C" DESC, c.run_id, c.seq DESC
"""
NAMESPACES = "SELECT thread_id, namespace FROM fermata_langgraph_thread WHERE thread_id = ANY(%s) ORDER BY run_id"
DELETE_RUNS = """
    DELETE FROM checkpoints_checkpoint c USING fermata_langgraph_thread t
    WHERE c.run_id = t.run_id AND c.workflow = ANY(%s)
    RETURNING c.run_id, c.phase
"""
DELETE_BUT_NEWEST = """
    DELETE FROM checkpoints_checkpoint WHERE run_id = %s AND phase <> (
        SELECT max(phase COLLATE "C") FROM checkpoints_checkpoint WHERE run_id = %s)
    RETURNING phase
"""
DELETE = (  # the thread first: that waits for a writer
    "DELETE FROM fermata_langgraph_thread WHERE run_id = %s",
    "DELETE FROM checkpoints_checkpoint WHERE run_id = %s",
    "DELETE FROM checkpoints_statepart WHERE run_id = %s",
    "DELETE FROM fermata_langgraph_pendingwrite WHERE run_id = %s",
)
DELETE_WRITES = "DELETE FROM fermata_langgraph_pendingwrite WHERE run_id = %s AND checkpoint_id = ANY(%s)"


@dataclass(frozen=True)
class Place:
    """A namespace of a thread."""

    thread_id: str
    namespace: str

    @property
    def run_id(self) -> UUID:
        return uuid5(_THREADS, f"{len(self.thread_id)}:{self.thread_id}:{self.namespace}")


@dataclass(frozen=True)
class Reading:
    """What a writer saw of a thread: `version`, in a reading that `name` tells from all others."""

    run_id: UUID
    version: int
    name: str

    def __str__(self) -> str:
        return f"{self.run_id}/{self.version}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Reading:
        run_id, version, name = text.split("/")
        return cls(UUID(run_id), int(version), name)


@dataclass(frozen=True)
class Saved:
    """A checkpoint of a thread, its values still as LangGraph's serializer made them. `maker`: the run it is of."""

    place: Place
    checkpoint_id: str
    maker: str
    state: dict[str, Any]
    position: Any


def read_thread(cursor: Cursor, place: Place) -> Reading | None:
    """A new reading, to be taken before anything else is read: what comes in between then refuses the write."""
    cursor.execute(VERSION, (place.run_id,))
    row = cursor.fetchone()
    return Reading(place.run_id, row[0], uuid4().hex) if row else None


def find(cursor: Cursor, place: Place, checkpoint_id: str | None) -> Saved | None:
    """A checkpoint by its id (None: the newest)."""
    cursor.execute(FIND, (place.run_id, checkpoint_id or "", checkpoint_id is None))
    row = cursor.fetchone()
    return _saved(cursor, place, row[0]) if row else None


def listed(
    cursor: Cursor,
    *,
    thread_id: str | None,
    namespace: str | None = None,
    checkpoint_id: str | None = None,
    before: str | None = None,
) -> Iterator[Saved]:
    """Checkpoints, the newest first; None does not filter. Each is loaded when it is asked for."""
    filters = [(value or "", value is None) for value in (thread_id, namespace, checkpoint_id, before)]
    cursor.execute(LIST, [part for pair in filters for part in pair])
    for thread, name, _, _, seq in cursor.fetchall():
        yield _saved(cursor, Place(thread, name), seq)


def follow(cursor: Cursor, place: Place, reading: Reading, *, checkpoints: int) -> int:
    """Take the thread's lock for a write that follows `reading`; returns its new head. Raises ConcurrentWriter."""
    cursor.execute(FOLLOW, (reading.name, checkpoints, place.run_id, reading.name, reading.version))
    row = cursor.fetchone()
    if row is None:
        raise ConcurrentWriter(place.thread_id, place.namespace)
    return int(row[0])


def extend(cursor: Cursor, place: Place, *, parent: str | None, checkpoint_id: str) -> int:
    """Take the lock for a writer who read nothing: it may begin the thread, or go on from what was written last."""
    cursor.execute(ADD, (place.run_id, place.thread_id, place.namespace))
    cursor.execute(EXTEND, (place.run_id,))
    seq = int(cursor.fetchone()[0])
    cursor.execute(NEWEST_WRITTEN, (place.run_id,))
    newest = cursor.fetchone()
    if parent is not None and newest is not None and newest[0] not in (parent, checkpoint_id):
        raise ConcurrentWriter(place.thread_id, place.namespace)
    return seq


def write(
    cursor: Cursor,
    place: Place,
    *,
    seq: int,
    head: Head | None,
    saved: Saved,
    limit: int,
) -> Head:
    """Save a checkpoint under the thread's lock. `head`, if it is the newest, spares reading that."""
    if head is None or head.seq != seq - 1:
        head = newest_head(cursor, place)
    prepared = prepare(
        run_id=place.run_id,
        head=head,
        seq=seq,
        epoch=0,
        workflow=saved.maker,
        schema=1,
        phase=saved.checkpoint_id,
        turn=0,
        reason=Reason.EXTERNAL.value,
        state=saved.state,
        new_history=(),
        position=saved.position,
        pending=None,
        limit=limit,
    )
    insert(cursor, prepared)
    return prepared.head


def newest_head(cursor: Cursor, place: Place) -> Head | None:
    cursor.execute(NEWEST_WRITTEN, (place.run_id,))
    if cursor.fetchone() is None:
        return None
    _, head = load(cursor, run_id=place.run_id, history=False)
    return head


def places(cursor: Cursor, thread_ids: Sequence[str]) -> list[Place]:
    """All namespaces of these threads."""
    cursor.execute(NAMESPACES, (list(thread_ids),))
    return [Place(thread_id, namespace) for thread_id, namespace in cursor.fetchall()]


def delete(cursor: Cursor, run_id: UUID) -> None:
    for statement in DELETE:
        cursor.execute(statement, (run_id,))


def delete_made_by(cursor: Cursor, makers: Sequence[str]) -> None:
    """Delete every checkpoint that these LangGraph runs made, and the writes after it."""
    cursor.execute(DELETE_RUNS, (list(makers),))
    gone: dict[UUID, list[str]] = {}
    for run_id, checkpoint_id in cursor.fetchall():
        gone.setdefault(run_id, []).append(checkpoint_id)
    for run_id, checkpoint_ids in sorted(gone.items()):
        _clear_up(cursor, run_id, checkpoint_ids)


def delete_but_newest(cursor: Cursor, run_id: UUID) -> None:
    cursor.execute(DELETE_BUT_NEWEST, (run_id, run_id))
    _clear_up(cursor, run_id, [checkpoint_id for (checkpoint_id,) in cursor.fetchall()])


def _clear_up(cursor: Cursor, run_id: UUID, checkpoint_ids: list[str]) -> None:
    """What the deleted checkpoints leave. The head moves, so that nobody goes on from one that is gone."""
    cursor.execute(DELETE_WRITES, (run_id, checkpoint_ids))
    cursor.execute(EXTEND, (run_id,))
    delete_unneeded_parts(cursor, run_id=run_id, newest=cursor.fetchone()[0])


def _saved(cursor: Cursor, place: Place, seq: int) -> Saved:
    snapshot, _ = load(cursor, run_id=place.run_id, seq=seq, history=False)
    return Saved(place, snapshot.phase, snapshot.workflow, snapshot.state, snapshot.position)
