"""Reading a checkpoint back: two round trips however long the run, and nothing believed unverified."""

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from checkpoints.codec.decoding import unpacked
from checkpoints.codec.frames import MAX_BYTES
from checkpoints.errors import Corrupt, NotFound, SnapshotTooLarge
from checkpoints.store.blobs import checkpoint_place, chunk_place, part_place, unsealed
from checkpoints.store.digests import history_digest, snapshot_digest
from checkpoints.store.manifests import unpacked_manifest
from checkpoints.store.records import Cursor, Head, Label, Part, Snapshot
from checkpoints.store.state import part_path, unpacked_parts
from checkpoints.store.tails import Tail

_ROW = """SELECT seq, epoch, workflow, schema, phase, turn, reason, at, size, digest, history_length,
           manifest, body
    FROM checkpoints_checkpoint WHERE run_id = %s {which}"""
# Values in selects of their own, which PostgreSQL does not estimate by: it plans this once, and not each time again.
# OFFSET 0, so that each part is looked up: a run may have thousands that are wanted no more.
_BODIES = """SELECT wanted.name, wanted.introduced_seq, 0, part.body
    FROM unnest((SELECT %s::text[]), (SELECT %s::int[])) AS wanted (name, introduced_seq),
    LATERAL (
        SELECT body FROM checkpoints_statepart
        WHERE run_id = %s AND name = wanted.name AND introduced_seq = wanted.introduced_seq OFFSET 0
    ) AS part
    UNION ALL
    SELECT NULL, first, count, body FROM checkpoints_historychunk
    WHERE run_id = (SELECT %s::uuid) AND first < (SELECT %s::int)"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoded:
    """One checkpoint, verified and not yet decoded. `chunks` is None if the history was not read."""

    label: Label
    at: datetime
    size: int
    digest: bytes
    history_length: int
    tail: Tail
    parts: dict[str, bytes]
    chunks: list[list[bytes]] | None
    head: Head


def load(
    cursor: Cursor, *, run_id: UUID, seq: int | None = None, history: bool = True, max_bytes: int = MAX_BYTES
) -> tuple[Snapshot, Head]:
    """Checkpoint `seq` of a run (None: the newest one), and the head with which a writer goes on from it.

    With `history=False` the items are not read. Raises NotFound; SnapshotTooLarge if what is to be read is
    more than `max_bytes` uncompressed; Corrupt naming the record; UnknownType and ShapeChanged where this
    build lacks a class.
    """
    encoded = read(cursor, run_id=run_id, seq=seq, history=history, max_bytes=max_bytes)
    snapshot = Snapshot(
        **asdict(encoded.label),
        at=encoded.at,
        size=encoded.size,
        digest=encoded.digest,
        state=unpacked_parts(encoded.parts),
        history_length=encoded.history_length,
        history=None if encoded.chunks is None else tuple(unpacked_items(encoded.chunks)),
        position=unpacked(encoded.tail.position, what="position"),
        pending=unpacked(encoded.tail.pending, what="pending"),
    )
    return snapshot, encoded.head


def read(cursor: Cursor, *, run_id: UUID, seq: int | None, history: bool, max_bytes: int) -> Encoded:
    """`load` without decoding: a copy needs no classes. Raises NotFound, SnapshotTooLarge, Corrupt."""
    row = _row(cursor, run_id, seq)
    seq, epoch, workflow, schema, phase, turn, reason, at, size, digest, history_length, manifest, body = row
    if history and size > max_bytes:
        raise SnapshotTooLarge(size, max_bytes)
    what = f"checkpoint {seq}"
    data = unsealed(bytes(body), checkpoint_place(run_id, seq), what=what, max_bytes=max_bytes)
    tail = Tail.unpacked(data, what=what)
    introduced = unpacked_manifest(bytes(manifest), seq)
    names, seqs = list(introduced), list(introduced.values())
    cursor.execute(_BODIES, [names, seqs, run_id, run_id, history_length if history else 0])
    parts, chunks = _opened(run_id, cursor.fetchall(), max_bytes)
    if parts.keys() != introduced.keys():
        _row(cursor, run_id, seq)  # raises NotFound if the checkpoint was deleted between the two queries
        raise Corrupt(part_path(min(introduced.keys() - parts.keys())), "is missing")
    parts = {name: parts[name] for name in introduced}
    described = {
        name: Part(introduced_seq=introduced[name], digest=hashlib.sha256(part).digest(), size=len(part))
        for name, part in parts.items()
    }
    label = Label(
        run_id=run_id,
        seq=seq,
        epoch=epoch,
        workflow=workflow,
        schema=schema,
        phase=phase,
        turn=turn,
        reason=reason,
    )
    computed = snapshot_digest(label=label, size=size, history_length=history_length, manifest=described, tail=data)
    if bytes(digest) != computed:
        raise Corrupt(what, "its columns, its parts and its digest do not belong together")
    return Encoded(
        label=label,
        at=at,
        size=size,
        digest=computed,
        history_length=history_length,
        tail=tail,
        parts=parts,
        chunks=_whole(chunks, history_length, tail.history_digest) if history else None,
        head=Head(
            seq=seq,
            manifest=described,
            history_length=history_length,
            history_digest=tail.history_digest,
            history_size=size - len(data) - sum(part.size for part in described.values()),
        ),
    )


def opened_chunk(run_id: UUID, first: int, count: int, body: bytes, *, max_bytes: int = MAX_BYTES) -> list[bytes]:
    """The encoded items of a row of the history. Raises Corrupt."""
    what = f"history from item {first}"
    items = unpacked(unsealed(body, chunk_place(run_id, first, count), what=what, max_bytes=max_bytes), what=what)
    if type(items) is not list or len(items) != count:
        raise Corrupt(what, f"not {count} items")
    return items


def unpacked_items(chunks: Iterable[Iterable[bytes]], first: int = 0) -> Iterable[Any]:
    """The history items in `chunks`, the first of which has index `first`. Raises Unreadable."""
    encoded = (item for chunk in chunks for item in chunk)
    return (unpacked(item, what=f"history[{index}]") for index, item in enumerate(encoded, first))


def _row(cursor: Cursor, run_id: UUID, seq: int | None) -> Any:
    if seq is None:
        cursor.execute(_ROW.format(which="ORDER BY seq DESC LIMIT 1"), [run_id])
    else:
        cursor.execute(_ROW.format(which="AND seq = %s"), [run_id, seq])
    row = cursor.fetchone()
    if row is None:
        raise NotFound(run_id, seq)
    return row


def _opened(run_id: UUID, rows: Iterable[Any], max_bytes: int) -> tuple[dict[str, bytes], dict[int, list[bytes]]]:
    """State parts by name, and history chunks by the index of their first item."""
    parts, chunks = {}, {}
    for name, number, count, body in rows:
        if name is None:
            chunks[number] = opened_chunk(run_id, number, count, bytes(body), max_bytes=max_bytes)
        else:
            place = part_place(run_id, name, number)
            parts[name] = unsealed(bytes(body), place, what=part_path(name), max_bytes=max_bytes)
    return parts, chunks


def _whole(chunks: dict[int, list[bytes]], length: int, digest: bytes) -> list[list[bytes]]:
    """The chunks in order, if they are the whole history up to `length`."""
    ordered, running = [], bytes(32)
    reached = 0
    while reached < length:
        items = chunks.get(reached)
        if items is None:
            raise Corrupt(f"history from item {reached}", "is missing")
        ordered.append(items)
        running = history_digest(running, items)
        reached += len(items)
    if reached != length or running != digest:
        raise Corrupt("history", "is not the history that the checkpoint was taken with")
    return ordered
