"""The digests that bind a checkpoint: a running one over its history, and one over everything."""

import hashlib
from collections.abc import Iterable, Mapping

from checkpoints.codec.encoding import pack
from checkpoints.store.records import Label, Part


def history_digest(before: bytes, items: Iterable[bytes]) -> bytes:
    """The running digest after `items`, each encoded: SHA-256 of the 32 bytes before it and the item."""
    digest = before
    for item in items:
        digest = hashlib.sha256(digest + item).digest()
    return digest


def snapshot_digest(
    *, label: Label, size: int, history_length: int, manifest: Mapping[str, Part], tail: bytes
) -> bytes:
    """SHA-256 over the whole checkpoint: its label, its parts by their own digests, and its `Tail`.

    The tail carries the history's digest and 16 random bytes. So two checkpoints never have the same
    digest, and the digest, which outlives the run in audit trails, does not let anyone confirm a guess at
    what the run contained.
    """
    bound = [
        "fermata checkpoint 1",
        label.run_id.bytes,
        [label.seq, label.epoch, label.workflow, label.schema, label.phase, label.turn, label.reason],
        size,
        history_length,
        [[name, part.introduced_seq, part.digest] for name, part in manifest.items()],
        tail,
    ]
    return hashlib.sha256(pack(bound)).digest()
