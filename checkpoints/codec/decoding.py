"""msgpack to values. No bytes can name code: only registered names give objects."""

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from msgspec.msgpack import Ext

from checkpoints.codec import tags
from checkpoints.codec.encoding import MAX_DEPTH
from checkpoints.codec.registry import EnumClass, entry_called
from checkpoints.codec.zones import zone_from
from checkpoints.errors import Corrupt

_unpack = msgspec.msgpack.Decoder().decode
_MALFORMED = (TypeError, ValueError, LookupError, ArithmeticError, RecursionError)


def unpacked(data: bytes, *, what: str, depth: int = 0) -> Any:
    """The value that `packed` wrote; `depth` is the number of containers it was taken out of.

    Raises Corrupt naming `what`, UnknownType, ShapeChanged.
    """
    try:
        return _value(_unpack(data), depth)
    except _MALFORMED as error:
        # The message of such an error may quote the saved value.
        raise Corrupt(what, f"not a saved value ({type(error).__name__})") from None


def _value(node: Any, depth: int) -> Any:
    kind = type(node)
    if kind in _AS_THEY_ARE:
        return node
    if kind is float and math.isfinite(node):
        return node
    if depth >= MAX_DEPTH:
        raise ValueError("nested too deep")
    if kind is list:
        return _values(node, depth)
    if kind is dict:
        return _entries(node, depth)
    if kind is Ext:
        return _BY_TAG[node.code](node.data, depth)
    raise TypeError("no such type in this format")


def _values(nodes: Any, depth: int) -> list[Any]:
    if type(nodes) is not list:
        raise TypeError("not an array")
    return [_value(node, depth + 1) for node in nodes]


def _entries(nodes: Any, depth: int) -> dict[str, Any]:
    if type(nodes) is not dict or not all(type(key) is str for key in nodes):
        raise TypeError("not a map with string keys")
    return {key: _value(node, depth + 1) for key, node in nodes.items()}


def _collection(make: Callable[[list[Any]], Any]) -> Callable[[bytes, int], Any]:
    def decode(data: bytes, depth: int) -> Any:
        items = _values(_unpack(data), depth)
        value = make(items)
        if len(value) != len(items):
            raise ValueError("an item is there twice")
        return value

    return decode


def _pairs(data: bytes, depth: int) -> dict[Any, Any]:
    flat = _values(_unpack(data), depth)
    value = dict(zip(flat[::2], flat[1::2], strict=True))
    if len(value) * 2 != len(flat):
        raise ValueError("a key is there twice")
    return value


def _decimal(data: bytes, depth: int) -> Decimal:
    value = Decimal(data.decode())
    if not value.is_finite():
        raise ValueError("not finite")
    return value


def _moment(make: Callable[[str], Any]) -> Callable[[bytes, int], Any]:
    def decode(data: bytes, depth: int) -> Any:
        text, fold, zone = _unpack(data)
        return make(text).replace(fold=fold, tzinfo=zone_from(zone))

    return decode


def _timedelta(data: bytes, depth: int) -> timedelta:
    days, seconds, microseconds = _unpack(data)
    return timedelta(days=days, seconds=seconds, microseconds=microseconds)


def _enum(data: bytes, depth: int) -> Any:
    name, label = _unpack(data)
    entry = entry_called(name)
    if not isinstance(entry, EnumClass):
        raise TypeError("not an enum")
    return entry.member(label)


def _object(data: bytes, depth: int) -> Any:
    name, nodes = _unpack(data)
    entry = entry_called(name)
    if isinstance(entry, EnumClass):
        raise TypeError("an enum, not an object")
    return entry.restore(_entries(nodes, depth))


_AS_THEY_ARE = frozenset({str, int, bool, type(None), bytes})
_BY_TAG: dict[int, Callable[[bytes, int], Any]] = {
    tags.INTEGER: lambda data, depth: int.from_bytes(data, "big", signed=True),
    tags.TUPLE: _collection(tuple),
    tags.SET: _collection(set),
    tags.FROZENSET: _collection(frozenset),
    tags.PAIRS: _pairs,
    tags.DECIMAL: _decimal,
    tags.UUID: lambda data, depth: UUID(bytes=data),
    tags.DATETIME: _moment(datetime.fromisoformat),
    tags.DATE: lambda data, depth: date.fromisoformat(data.decode()),
    tags.TIME: _moment(time.fromisoformat),
    tags.TIMEDELTA: _timedelta,
    tags.ENUM: _enum,
    tags.OBJECT: _object,
}
