"""Writes that are not part of a running workflow."""

from dataclasses import replace
from uuid import UUID

from django.db import connection, transaction

from checkpoints.codec.frames import MAX_BYTES
from checkpoints.models import Checkpoint, HistoryChunk, Reason, StatePart
from checkpoints.store.reading import read
from checkpoints.store.records import Head
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


def _batches(chunks: list[list[bytes]]) -> list[list[bytes]]:
    items = [item for chunk in chunks for item in chunk]
    return [items[first : first + _ITEMS_PER_CHUNK] for first in range(0, len(items), _ITEMS_PER_CHUNK)]
