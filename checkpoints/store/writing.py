"""Preparing a checkpoint, which is pure, and writing it, which is one statement.

The caller owns the fence. It puts the checkpoint's inserts behind its own conditional update, in one
statement:

    cte = prepared.ctes("fence")
    WITH fence AS (UPDATE ... WHERE epoch = %s AND head_seq = %s ... RETURNING run_id),
         checkpoint AS (...), parts AS (...), history AS (...)
    SELECT count(*) FROM fence

Every insert selects from the guard, so that nothing is written when the fence found no row. The guard must
give one row or none.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any
from uuid import UUID

from checkpoints.codec.decoding import unpacked
from checkpoints.codec.encoding import Walk, pack
from checkpoints.codec.places import root
from checkpoints.codec.secrecy import packed_to_save
from checkpoints.errors import SnapshotTooLarge
from checkpoints.store.blobs import checkpoint_place, chunk_place, part_place, sealed
from checkpoints.store.digests import history_digest, snapshot_digest
from checkpoints.store.manifests import packed_manifest
from checkpoints.store.records import Cursor, Head, Label, Part
from checkpoints.store.state import packed_parts
from checkpoints.store.tails import Tail

_CHECKPOINT = """INSERT INTO checkpoints_checkpoint
    (epoch, size, seq, turn, schema, history_length, run_id, digest, workflow, phase, reason, manifest, body)
    SELECT %s::bigint, %s::bigint, %s::int, %s::int, %s::int, %s::int, %s::uuid, %s::bytea,
           %s::text, %s::text, %s::text, %s::bytea, %s::bytea
    FROM {guard}"""
_PARTS = """INSERT INTO checkpoints_statepart (introduced_seq, run_id, name, body)
    SELECT %s::int, %s::uuid, part.name, part.body
    FROM {guard}, (VALUES {rows}) AS part (name, body)"""
_PART_ROW = "(%s::text, %s::bytea)"
_HISTORY = """INSERT INTO checkpoints_historychunk (seq, run_id, first, count, body)
    SELECT %s::int, %s::uuid, chunk.first, chunk.count, chunk.body
    FROM {guard}, (VALUES {rows}) AS chunk (first, count, body)"""
_CHUNK_ROW = "(%s::int, %s::int, %s::bytea)"


Cte = tuple[str, str, tuple[Any, ...]]  # `name AS (sql)`, and the parameters for its `%s` in order


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """A checkpoint ready to be written. `head` is the run's head once it is; `size`: bytes uncompressed."""

    label: Label
    head: Head
    size: int
    digest: bytes
    body: bytes
    parts: Sequence[tuple[str, bytes]]
    chunks: Sequence[tuple[int, int, bytes]]

    def ctes(self, guard: str) -> list[Cte]:
        """The inserts: `checkpoint` and, where there is something to insert, `parts` and `history`."""
        if not guard.isidentifier():
            raise ValueError("the guard is the name of a common table expression")
        label = self.label
        manifest = packed_manifest(self.head.manifest)
        checkpoint = (
            label.epoch,
            self.size,
            label.seq,
            label.turn,
            label.schema,
            self.head.history_length,
            label.run_id,
            self.digest,
            label.workflow,
            label.phase,
            label.reason,
            manifest,
            self.body,
        )
        here = (label.seq, label.run_id)
        found: list[Cte] = [("checkpoint", _sql(_CHECKPOINT, guard), checkpoint)]
        if self.parts:
            sql = _sql(_PARTS, guard, _PART_ROW, len(self.parts))
            found.append(("parts", sql, (*here, *chain.from_iterable(self.parts))))
        if self.chunks:
            sql = _sql(_HISTORY, guard, _CHUNK_ROW, len(self.chunks))
            found.append(("history", sql, (*here, *chain.from_iterable(self.chunks))))
        return found


def encode_item(item: object, index: int) -> bytes:
    """A history item as `prepare` takes it, encoded when appended. Raises Unencodable, HoldsCredential."""
    return packed_to_save(Walk(), item, root(f"history[{index}]"))


def decode_item(body: bytes, index: int) -> Any:
    """The item that `encode_item` was given, as a later load will give it back."""
    return unpacked(body, what=f"history[{index}]")


def prepare(
    *,
    run_id: UUID,
    head: Head | None,
    seq: int,
    epoch: int,
    workflow: str,
    schema: int,
    phase: str,
    turn: int,
    reason: str,
    state: dict[Any, Any],
    new_history: Sequence[bytes],
    position: object,
    pending: object,
    limit: int,
) -> Prepared:
    """A checkpoint that follows `head` (None: the run's first one).

    `new_history` holds the items added since the head, each from `encode_item`. `limit` bounds the bytes of
    the whole snapshot, its history included, before compression. Raises Unencodable, HoldsCredential, SnapshotTooLarge.
    """
    walk = Walk()
    return assemble(
        label=Label(
            run_id=run_id,
            seq=seq,
            epoch=epoch,
            workflow=workflow,
            schema=schema,
            phase=phase,
            turn=turn,
            reason=reason,
        ),
        head=head or Head.before_first(),
        parts=packed_parts(walk, state),
        new_history=[new_history] if new_history else [],
        position=packed_to_save(walk, position, root("position")),
        pending=packed_to_save(walk, pending, root("pending")),
        limit=limit,
    )


def assemble(
    *,
    label: Label,
    head: Head,
    parts: Mapping[str, bytes],
    new_history: Sequence[Sequence[bytes]],
    position: bytes,
    pending: bytes,
    limit: int,
) -> Prepared:
    """`prepare`, from encoded values, with the new history in the chunks that it is stored in."""
    if label.seq <= head.seq:
        raise ValueError(f"checkpoint {label.seq} cannot follow checkpoint {head.seq}")
    digest = head.history_digest
    for items in new_history:
        digest = history_digest(digest, items)
    new_head = Head(
        seq=label.seq,
        manifest={name: _part(head.manifest.get(name), label.seq, data) for name, data in parts.items()},
        history_length=head.history_length + sum(map(len, new_history)),
        history_digest=digest,
        history_size=head.history_size + sum(len(item) for items in new_history for item in items),
    )
    tail = Tail(history_digest=digest, position=position, pending=pending).packed()
    size = sum(map(len, parts.values())) + new_head.history_size + len(tail)
    if size > limit:
        raise SnapshotTooLarge(size, limit)
    return Prepared(
        label=label,
        head=new_head,
        size=size,
        digest=snapshot_digest(
            label=label,
            size=size,
            history_length=new_head.history_length,
            manifest=new_head.manifest,
            tail=tail,
        ),
        body=sealed(tail, checkpoint_place(label.run_id, label.seq)),
        parts=[
            (name, sealed(data, part_place(label.run_id, name, label.seq)))
            for name, data in parts.items()
            if new_head.manifest[name].introduced_seq == label.seq
        ],
        chunks=_chunks(label.run_id, head.history_length, new_history),
    )


def insert(cursor: Cursor, prepared: Prepared) -> None:
    """Write a checkpoint in the caller's transaction, in which the caller already holds the run's lock."""
    ctes = prepared.ctes("held")
    inserts = ", ".join(f"{name} AS ({sql})" for name, sql, _ in ctes)
    cursor.execute(f"WITH held AS (SELECT), {inserts} SELECT", [param for _, _, params in ctes for param in params])


@lru_cache(1024)
def _sql(template: str, guard: str, row: str = "", count: int = 0) -> str:
    return template.format(guard=guard, rows=", ".join([row] * count))


def _part(before: Part | None, seq: int, data: bytes) -> Part:
    digest = hashlib.sha256(data).digest()
    if before is not None and before.digest == digest:
        return before
    return Part(introduced_seq=seq, digest=digest, size=len(data))


def _chunks(run_id: UUID, first: int, chunks: Sequence[Sequence[bytes]]) -> list[tuple[int, int, bytes]]:
    rows = []
    for items in chunks:
        count = len(items)
        rows.append((first, count, sealed(pack(items), chunk_place(run_id, first, count))))
        first += count
    return rows
