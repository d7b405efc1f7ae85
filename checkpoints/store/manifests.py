"""Which parts a checkpoint's state has, in order, and which checkpoint introduced each."""

from collections.abc import Mapping

from checkpoints.codec.decoding import unpacked
from checkpoints.codec.encoding import pack
from checkpoints.errors import Corrupt
from checkpoints.store.records import Part


def packed_manifest(parts: Mapping[str, Part]) -> bytes:
    return pack({name: part.introduced_seq for name, part in parts.items()})


def unpacked_manifest(data: bytes, seq: int) -> dict[str, int]:
    """The manifest of checkpoint `seq`: no part can have been introduced after it. Raises Corrupt."""
    what = f"checkpoint {seq}"
    manifest = unpacked(data, what=what)
    if type(manifest) is not dict or not all(
        type(introduced) is int and 0 <= introduced <= seq for introduced in manifest.values()
    ):
        raise Corrupt(what, "its manifest is none")
    return manifest
