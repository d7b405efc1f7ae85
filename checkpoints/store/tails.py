"""The small part of a checkpoint that is written anew each time."""

import os
from dataclasses import dataclass

from checkpoints.codec.decoding import unpacked
from checkpoints.codec.encoding import pack
from checkpoints.errors import Corrupt


@dataclass(frozen=True, kw_only=True, slots=True)
class Tail:
    """The running digest of the history, and the encoded position and pending calls."""

    history_digest: bytes
    position: bytes
    pending: bytes

    def packed(self) -> bytes:
        """With 16 random bytes in front: see `snapshot_digest`."""
        return pack([os.urandom(16), self.history_digest, self.position, self.pending])

    @classmethod
    def unpacked(cls, data: bytes, *, what: str) -> "Tail":
        """Raises Corrupt."""
        try:
            _, history_digest, position, pending = unpacked(data, what=what)
        except (TypeError, ValueError):
            raise Corrupt(what, "not the tail of a checkpoint") from None
        return cls(history_digest=history_digest, position=position, pending=pending)
