"""Deleting what no remaining checkpoint needs."""

from uuid import UUID

from checkpoints.store.manifests import unpacked_manifest
from checkpoints.store.records import Cursor

_MANIFESTS = "SELECT seq, manifest FROM checkpoints_checkpoint WHERE run_id = %s"
# A part introduced after the newest checkpoint that was looked at belongs to one that is being written.
_DELETE = """DELETE FROM checkpoints_statepart part
    WHERE run_id = %s AND introduced_seq <= %s AND NOT EXISTS (
        SELECT FROM unnest(%s::text[], %s::int[]) AS needed (name, introduced_seq)
        WHERE needed.name = part.name AND needed.introduced_seq = part.introduced_seq)"""


def delete_unneeded_parts(cursor: Cursor, *, run_id: UUID, newest: int) -> int:
    """Delete the parts, introduced up to checkpoint `newest`, that no checkpoint's manifest names. How many."""
    cursor.execute(_MANIFESTS, [run_id])
    needed = {entry for seq, manifest in cursor.fetchall() for entry in unpacked_manifest(bytes(manifest), seq).items()}
    names, seqs = [name for name, _ in needed], [seq for _, seq in needed]
    cursor.execute(_DELETE, [run_id, newest, names, seqs])
    return int(cursor.rowcount)
