"""Python values to bytes and back: equal and of the same type, or refused with the path. No pickle.

JSON types, Decimal, datetime, date, time, timedelta, UUID, bytes, tuple, set, frozenset, dicts with keys of
any of these, and the enums, dataclasses and pydantic models that were registered by name. Refused: NaN and
infinities, lone surrogates, subclasses, live handles, objects reachable by two paths, nesting of more than
200 containers, and what looks like a credential.
"""

import hashlib
from typing import Any

from checkpoints.codec.decoding import unpacked
from checkpoints.codec.encoding import MAX_DEPTH, Walk
from checkpoints.codec.frames import MAX_BYTES, framed, unframed
from checkpoints.codec.frozen import freeze, thaw
from checkpoints.codec.jsonable import to_jsonable
from checkpoints.codec.places import root
from checkpoints.codec.registry import register
from checkpoints.codec.secrecy import (
    SecretRef,
    credentials_in,
    keep_out,
    keeping_secrets_out,
    packed_to_save,
    redact,
)
from checkpoints.errors import SnapshotTooLarge

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "SecretRef",
    "credentials_in",
    "decode",
    "encode",
    "fingerprint",
    "freeze",
    "keep_out",
    "keeping_secrets_out",
    "redact",
    "register",
    "roundtrip",
    "saved",
    "thaw",
    "to_jsonable",
]


def encode(value: object, path: str = "state", *, limit: int | None = None) -> bytes:
    """`value` as bytes; `path` is its name in errors. Raises Unencodable, HoldsCredential.

    With a `limit` on its bytes before compression also SnapshotTooLarge.
    """
    data = packed_to_save(Walk(), value, root(path))
    if limit is not None and len(data) > limit:
        raise SnapshotTooLarge(len(data), limit, path)
    return framed(data)


def decode(body: bytes, *, what: str = "value", max_bytes: int = MAX_BYTES) -> Any:
    """The value that `encode` was given. Raises Corrupt naming `what`, UnknownType or ShapeChanged.

    `max_bytes` bounds what a body may decompress to; more is Corrupt.
    """
    return unpacked(unframed(body, what=what, max_bytes=max_bytes), what=what)


def fingerprint(value: object, path: str = "value") -> bytes:
    """SHA-256 that equal values of equal types share, in every build. Raises Unencodable.

    The bytes of `encode` do not do for this: they depend on the order of dicts and on zstd's version.
    """
    return hashlib.sha256(Walk(ordered=True).packed(value, root(path))).digest()


def roundtrip(value: object, path: str = "state") -> Any:
    """A copy of `value` as it would come back after being saved. Raises Unencodable, HoldsCredential."""
    return unpacked(packed_to_save(Walk(), value, root(path)), what=path)


def saved(value: object, path: str = "state") -> tuple[bytes, Any]:
    """What `encode` gives, and the copy that `decode` will give of it.

    Raises Unencodable, HoldsCredential; SnapshotTooLarge for what `decode` would not take.
    """
    data = packed_to_save(Walk(), value, root(path))
    if len(data) > MAX_BYTES:
        raise SnapshotTooLarge(len(data), MAX_BYTES, path)
    return framed(data), unpacked(data, what=path)
