"""Encoded bytes as they are kept: one byte that says how they are packed, then zstd or nothing."""

import threading

import zstandard

from checkpoints.errors import Corrupt

MAX_BYTES = 64 * 1024 * 1024

# The first byte. A number, once released, keeps its meaning for ever.
_PLAIN = b"\x01"
_ZSTD = b"\x02"

_WORTH_A_TRY = 128  # shorter bodies do not shrink by more than the frame costs
_LEVEL = 3


class _PerThread(threading.local):
    """zstd's contexts: dearer to make than to use, and not for two threads at once."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_zstd = _PerThread()


def framed(data: bytes) -> bytes:
    """`data`, compressed where that makes it shorter."""
    if len(data) >= _WORTH_A_TRY:
        compressed = _zstd.compressor.compress(data)
        if len(compressed) < len(data):
            return _ZSTD + compressed
    return _PLAIN + data


def unframed(body: bytes, *, what: str, max_bytes: int = MAX_BYTES) -> bytes:
    """What `framed` was given. Raises Corrupt naming `what`, also if it would be over `max_bytes` long."""
    kind, data = body[:1], body[1:]
    if kind == _PLAIN:
        size = len(data)
    elif kind == _ZSTD:
        try:
            size = zstandard.frame_content_size(data)
        except zstandard.ZstdError:
            raise Corrupt(what, "not a zstd frame") from None
    else:
        raise Corrupt(what, f"unknown format {kind.hex() or 'of length 0'}")
    # A frame states its size before anything is allocated for it; one that does not was not written here.
    if not 0 <= size <= max_bytes:
        raise Corrupt(what, f"holds more than {max_bytes} bytes, or does not say how many")
    if kind == _PLAIN:
        return data
    try:
        return _zstd.decompressor.decompress(data, allow_extra_data=False)
    except zstandard.ZstdError:
        raise Corrupt(what, "truncated or damaged zstd frame") from None
