"""What a `body` column holds: a kind, something that binds the bytes to their place, and the frame.

In the clear that is a checksum, which finds accidents; encrypted it is the tag of AES-256-GCM, which finds any change.
"""

import hashlib
import os
from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import InvalidTag

from checkpoints.codec.encoding import pack
from checkpoints.codec.frames import MAX_BYTES, framed, unframed
from checkpoints.errors import Corrupt, NotEncrypted, UnknownKey
from checkpoints.keys import key_ring

# The first byte. A number, once released, keeps its meaning for ever.
_CLEAR = b"\x01"  # 16 bytes of SHA-256 over place and frame, the frame
_ENCRYPTED = b"\x02"  # length and bytes of the key's id, 12 bytes of nonce, the frame encrypted, 16 bytes of tag

_CHECK_BYTES = 16
_NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Place:
    """Where a body belongs: `bound` is one msgpack value, unlike that of any other place of any run."""

    run_id: UUID
    bound: bytes


def checkpoint_place(run_id: UUID, seq: int) -> Place:
    return Place(run_id, pack(["checkpoint", run_id.bytes, seq]))


def part_place(run_id: UUID, name: str, introduced_seq: int) -> Place:
    return Place(run_id, pack(["part", run_id.bytes, name, introduced_seq]))


def chunk_place(run_id: UUID, first: int, count: int) -> Place:
    return Place(run_id, pack(["history", run_id.bytes, first, count]))


def sealed(data: bytes, place: Place) -> bytes:
    """`data` as it is stored at `place`: encrypted, if the deployment has a key."""
    return sealed_frame(framed(data), place)


def unsealed(body: bytes, place: Place, *, what: str, max_bytes: int = MAX_BYTES) -> bytes:
    """What `sealed` was given for the same place. Raises Corrupt, NotEncrypted, UnknownKey, naming `what`."""
    return unframed(unsealed_frame(body, place, what=what), what=what, max_bytes=max_bytes)


def unsealed_frame(body: bytes, place: Place, *, what: str) -> bytes:
    """What `sealed_frame` was given for the same place. Raises Corrupt, NotEncrypted, UnknownKey, naming `what`."""
    if body.startswith(_CLEAR) and key_ring().required:
        raise NotEncrypted(what)
    return _frame(body, place, what)


def resealed(body: bytes, place: Place, *, what: str) -> bytes:
    """`body` under the current key, whatever it is under now. Raises Corrupt, UnknownKey."""
    return sealed_frame(_frame(body, place, what), place)


def current_header() -> bytes:
    """What every body begins with that is sealed now."""
    key_id = key_ring().current
    return _CLEAR if key_id is None else _header(key_id)


def sealed_frame(frame: bytes, place: Place) -> bytes:
    """The same for what `codec.encode` gave, which is framed already."""
    ring = key_ring()
    if ring.current is None:
        return _CLEAR + _check(place, frame) + frame
    header, nonce = _header(ring.current), os.urandom(_NONCE_BYTES)
    cipher = ring.cipher(ring.current, place.run_id)
    return header + nonce + cipher.encrypt(nonce, frame, header + place.bound)


def _frame(body: bytes, place: Place, what: str) -> bytes:
    if body.startswith(_CLEAR):
        check, frame = body[1 : 1 + _CHECK_BYTES], body[1 + _CHECK_BYTES :]
        if check != _check(place, frame):
            raise Corrupt(what, "the bytes are not those that were written here")
        return frame
    if not body.startswith(_ENCRYPTED) or len(body) < 2:
        raise Corrupt(what, f"unknown kind {body[:1].hex() or 'of length 0'}")
    header = body[: 2 + body[1]]
    nonce, rest = body[len(header) :][:_NONCE_BYTES], body[len(header) + _NONCE_BYTES :]
    key_id = header[2:].decode(errors="replace")
    try:
        return key_ring().cipher(key_id, place.run_id).decrypt(nonce, rest, header + place.bound)
    except KeyError:
        raise UnknownKey(what, key_id) from None
    except (InvalidTag, ValueError):
        raise Corrupt(what, "the bytes are not those that were written here") from None


def _header(key_id: str) -> bytes:
    return _ENCRYPTED + bytes([len(key_id)]) + key_id.encode()


def _check(place: Place, frame: bytes) -> bytes:
    return hashlib.sha256(place.bound + frame).digest()[:_CHECK_BYTES]
