"""What a `body` column holds: a kind, a check that binds the bytes to their place, and the frame itself."""

import hashlib
from typing import TypeAlias
from uuid import UUID

from checkpoints.codec.encoding import pack
from checkpoints.codec.frames import MAX_BYTES, framed, unframed
from checkpoints.errors import Corrupt

Place: TypeAlias = bytes

# The first byte. A number, once released, keeps its meaning for ever.
_CHECKED = b"\x01"  # then 16 bytes of SHA-256 over place and frame, then the frame
_CHECK_BYTES = 16


def checkpoint_place(run_id: UUID, seq: int) -> Place:
    return pack(["checkpoint", run_id.bytes, seq])


def part_place(run_id: UUID, name: str, introduced_seq: int) -> Place:
    return pack(["part", run_id.bytes, name, introduced_seq])


def chunk_place(run_id: UUID, first: int, count: int) -> Place:
    return pack(["history", run_id.bytes, first, count])


def sealed(data: bytes, place: Place) -> bytes:
    """`data` as it is stored at `place`."""
    frame = framed(data)
    return _CHECKED + _check(place, frame) + frame


def unsealed(body: bytes, place: Place, *, what: str, max_bytes: int = MAX_BYTES) -> bytes:
    """What `sealed` was given for the same place. Raises Corrupt naming `what`."""
    kind, check, frame = body[:1], body[1 : 1 + _CHECK_BYTES], body[1 + _CHECK_BYTES :]
    if kind != _CHECKED:
        raise Corrupt(what, f"unknown kind {kind.hex() or 'of length 0'}")
    if check != _check(place, frame):
        raise Corrupt(what, "the bytes are not those that were written here")
    return unframed(frame, what=what, max_bytes=max_bytes)


def _check(place: Place, frame: bytes) -> bytes:
    # A place is one msgpack value, so where it ends is never in question.
    return hashlib.sha256(place + frame).digest()[:_CHECK_BYTES]
