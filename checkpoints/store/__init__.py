"""Writing checkpoints and reading them back. See `writing` for how a caller fences a write."""

from checkpoints.store.reading import load
from checkpoints.store.records import Cursor, Head, Part, Snapshot
from checkpoints.store.writing import Cte, Prepared, decode_item, encode_item, insert, prepare

__all__ = [
    "Cte",
    "Cursor",
    "Head",
    "Part",
    "Prepared",
    "Snapshot",
    "decode_item",
    "encode_item",
    "insert",
    "load",
    "prepare",
]
