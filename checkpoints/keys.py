"""The keys that snapshots are encrypted with at rest.

`settings.FERMATA_SNAPSHOT_KEYS` maps a key's id to its 32 bytes: the first key seals, all of them open.
`settings.FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED` makes a snapshot in the clear unreadable.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from functools import lru_cache
from uuid import UUID

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from django.conf import settings

_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")
_KEY_BYTES = 32


def parse_keys(text: str) -> dict[str, bytes]:
    """`id:base64,id:base64`, the sealing key first, as a mapping. Raises ValueError that shows ids and no keys."""
    keys: dict[str, bytes] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        key_id, _, encoded = entry.partition(":")
        try:
            key = base64.b64decode(encoded, validate=True)
        except binascii.Error:
            key = b""
        if not _ID.fullmatch(key_id) or len(key) != _KEY_BYTES or key_id in keys:
            raise ValueError(f"key {len(keys) + 1} must be an id of its own, a colon and 32 bytes in base64")
        keys[key_id] = key
    return keys


class KeyRing:
    """The deployment's keys. `current` is the id of the one that seals, or None: then nothing is encrypted."""

    def __init__(self, keys: Mapping[str, bytes], *, required: bool) -> None:
        if required and not keys:
            raise ValueError("FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED is set without FERMATA_SNAPSHOT_KEYS")
        self.current = next(iter(keys), None)
        self.required = required
        self._keys = dict(keys)

    def cipher(self, key_id: str, run_id: UUID) -> AESGCM:
        """The cipher of one run: each has a key of its own, so that random nonces cannot run out. Raises KeyError."""
        return _cipher(self._keys[key_id], run_id)


def key_ring() -> KeyRing:
    """The keys in the settings, which may change while a test runs."""
    return _ring(tuple(settings.FERMATA_SNAPSHOT_KEYS.items()), settings.FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED)


@lru_cache(8)
def _ring(keys: tuple[tuple[str, bytes], ...], required: bool) -> KeyRing:
    return KeyRing(dict(keys), required=required)


@lru_cache(1024)
def _cipher(key: bytes, run_id: UUID) -> AESGCM:
    info = b"fermata snapshot of run " + run_id.bytes
    return AESGCM(HKDFExpand(algorithm=SHA256(), length=_KEY_BYTES, info=info).derive(key))
