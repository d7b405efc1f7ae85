"""Writes that are not part of a running workflow."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from checkpoints.codec.frames import MAX_BYTES
from checkpoints.models import Checkpoint, HistoryChunk, Reason, StatePart
from checkpoints.store.reading import read
from checkpoints.store.records import Head
from checkpoints.store.retention import delete_unneeded_parts
from checkpoints.store.rotation import TABLES, reseal
from checkpoints.store.writing import Prepared, assemble, insert

_ITEMS_PER_CHUNK = 256


@transaction.atomic
def delete_run(*, run_id: UUID) -> None:
    """Delete every snapshot of a run. The caller holds the run's lock, or has deleted the run."""
    for model in (Checkpoint, StatePart, HistoryChunk):
        model.objects.filter(run_id=run_id).delete()


@transaction.atomic
def copy_for_fork(
    *, source_run: UUID, seq: int, target_run: UUID, epoch: int = 0, max_bytes: int = MAX_BYTES
) -> Prepared:
    """Copy checkpoint `seq` of a run to be the first, 0, of another. Needs none of the run's classes.

    Nothing is shared between the two runs: either can be deleted. Raises NotFound, SnapshotTooLarge, Corrupt.
    """
    with connection.cursor() as cursor:
        source = read(cursor, run_id=source_run, seq=seq, history=True, max_bytes=max_bytes)
        copy = assemble(
            label=replace(source.label, run_id=target_run, seq=0, epoch=epoch, reason=Reason.FORK),
            head=Head.before_first(),
            parts=source.parts,
            new_history=_batches(source.chunks or []),
            position=source.tail.position,
            pending=source.tail.pending,
            limit=max_bytes,
        )
        insert(cursor, copy)
    return copy


@dataclass(frozen=True, kw_only=True, slots=True)
class Rotated:
    """How many bodies were sealed anew, and what kept the others from it."""

    count: int
    unreadable: tuple[str, ...]


def rotate_keys(*, batch: int = 200) -> Rotated:
    """Seal everything that is not under the current key with it. Can be stopped and started again at any time.

    Each batch is a transaction of its own. Writers must have the new key before this starts.
    """
    count = 0
    unreadable: list[str] = []
    for table in TABLES:
        after, more = None, True
        while more:
            with transaction.atomic(), connection.cursor() as cursor:
                done = reseal(cursor, table, after, batch)
            count += done.count - len(done.unreadable)
            unreadable += done.unreadable
            after, more = done.last, done.last is not None
    return Rotated(count=count, unreadable=tuple(unreadable))


@dataclass(frozen=True, kw_only=True, slots=True)
class Pruned:
    """How many rows were deleted."""

    checkpoints: int
    parts: int


@transaction.atomic
def prune(*, run_id: UUID, keep: int, older_than: datetime, protect: Collection[int] = ()) -> Pruned:
    """Delete a run's checkpoints that are older than `older_than`, but not its `keep` newest and not `protect`.

    Whatever a remaining checkpoint needs stays: its parts of the state, and the whole history, which later
    checkpoints are made of. The newest checkpoint always stays. A writer may go on meanwhile.
    """
    everything = Checkpoint.objects.filter(run_id=run_id)
    newest = list(everything.order_by("-seq").values_list("seq", flat=True)[: max(keep, 1)])
    if not newest:
        return Pruned(checkpoints=0, parts=0)
    old = everything.filter(at__lt=older_than).exclude(seq__in={*newest, *protect})
    checkpoints, _ = old.filter(seq__lt=newest[0]).delete()
    with connection.cursor() as cursor:
        parts = delete_unneeded_parts(cursor, run_id=run_id, newest=newest[0])
    return Pruned(checkpoints=checkpoints, parts=parts)


def _batches(chunks: list[list[bytes]]) -> list[list[bytes]]:
    items = [item for chunk in chunks for item in chunk]
    return [items[first : first + _ITEMS_PER_CHUNK] for first in range(0, len(items), _ITEMS_PER_CHUNK)]
