"""Values to msgpack, type for type: each exact type has an encoder, any other is refused with its path."""

import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
from msgspec.msgpack import Ext

from checkpoints.codec import tags
from checkpoints.codec.places import SET_ITEM, Place, contains, render, root, step_to
from checkpoints.codec.refusals import reason
from checkpoints.codec.registry import EnumClass, entry_of
from checkpoints.codec.zones import zone_label
from checkpoints.errors import Unencodable

MAX_DEPTH = 200

pack = msgspec.msgpack.Encoder().encode
_pack_ordered = msgspec.msgpack.Encoder(order="deterministic").encode


def packed(value: object, path: str = "state") -> bytes:
    """`value` as msgpack; `path` names it in errors. Raises Unencodable."""
    return Walk().packed(value, root(path))


class Walk:
    """One pass over one or several values. It remembers changeable objects and so finds sharing and cycles.

    The values must stay alive as long as the walk.
    """

    def __init__(self, *, ordered: bool = False) -> None:
        """`ordered`: sort the keys of dicts, so that equal values have equal bytes."""
        self.ordered = ordered
        self.pack = _pack_ordered if ordered else pack
        self.seen: dict[int, Place] = {}

    def packed(self, value: object, place: Place, depth: int = 0) -> bytes:
        return self.pack(self.tree(value, place, depth))

    def tree(self, value: object, place: Place, depth: int) -> object:
        """What msgspec shall write for `value`."""
        encode = _ENCODERS.get(type(value))
        return encode(self, value, place, depth) if encode is not None else self.registered(value, place, depth)

    def registered(self, value: Any, place: Place, depth: int) -> Ext:
        entry = entry_of(type(value))
        if entry is None:
            raise Unencodable(render(place), reason(value))
        if isinstance(entry, EnumClass):
            return Ext(tags.ENUM, self.pack([entry.name, entry.label(value)]))
        self.enter(value, place, depth, shareable=entry.frozen)
        try:
            content = entry.content(value)
        except ValueError as error:
            raise Unencodable(render(place), str(error)) from None
        return Ext(tags.OBJECT, self.pack([entry.name, self.entries(content, place, depth)]))

    def enter(self, value: object, place: Place, depth: int, *, shareable: bool) -> None:
        if depth >= MAX_DEPTH:
            raise Unencodable(render(place), f"is nested more than {MAX_DEPTH} deep")
        if shareable:
            return
        first = self.seen.setdefault(id(value), place)
        if first is place:
            return
        if contains(first, place):
            raise Unencodable(render(place), f"contains itself: it is also {render(first)}")
        raise Unencodable(render(place), f"is the same object as {render(first)}, and would come back as two: copy it")

    def items(self, values: list[Any] | tuple[Any, ...], place: Place, depth: int) -> list[object]:
        return [self.tree(value, (place, index), depth + 1) for index, value in enumerate(values)]

    def entries(self, values: dict[str, Any], place: Place, depth: int) -> dict[str, object]:
        entries = {}
        for key, value in values.items():
            inside = (place, key)
            entries[_text(self, key, inside, depth)] = self.tree(value, inside, depth + 1)
        return entries

    def sorted_items(self, values: set[Any] | frozenset[Any], place: Place, depth: int) -> bytes:
        """Sets have no order of their own: the order of bytes makes equal sets equal on disk."""
        each = sorted(self.packed(value, (place, SET_ITEM), depth + 1) for value in values)
        return self.pack([msgspec.Raw(item) for item in each])


def _as_it_is(walk: Walk, value: object, place: Place, depth: int) -> object:
    return value


def _text(walk: Walk, value: str, place: Place, depth: int) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Unencodable(render(place), f"has a lone surrogate at character {error.start}") from None
    return value


def _integer(walk: Walk, value: int, place: Place, depth: int) -> object:
    if -(2**63) <= value < 2**64:
        return value
    return Ext(tags.INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _float(walk: Walk, value: float, place: Place, depth: int) -> float:
    if not math.isfinite(value):
        raise Unencodable(render(place), "is not a finite number")
    return value


def _decimal(walk: Walk, value: Decimal, place: Place, depth: int) -> Ext:
    if not value.is_finite():
        raise Unencodable(render(place), "is not a finite number")
    return Ext(tags.DECIMAL, str(value).encode())


def _list(walk: Walk, value: list[Any], place: Place, depth: int) -> list[object]:
    walk.enter(value, place, depth, shareable=False)
    return walk.items(value, place, depth)


def _tuple(walk: Walk, value: tuple[Any, ...], place: Place, depth: int) -> Ext:
    walk.enter(value, place, depth, shareable=True)
    return Ext(tags.TUPLE, walk.pack(walk.items(value, place, depth)))


def _set(walk: Walk, value: set[Any], place: Place, depth: int) -> Ext:
    walk.enter(value, place, depth, shareable=False)
    return Ext(tags.SET, walk.sorted_items(value, place, depth))


def _frozenset(walk: Walk, value: frozenset[Any], place: Place, depth: int) -> Ext:
    walk.enter(value, place, depth, shareable=True)
    return Ext(tags.FROZENSET, walk.sorted_items(value, place, depth))


def _dict(walk: Walk, value: dict[Any, Any], place: Place, depth: int) -> object:
    walk.enter(value, place, depth, shareable=False)
    if all(type(key) is str for key in value):
        return walk.entries(value, place, depth)
    pairs = []
    for key, item in value.items():
        inside = (place, step_to(key))
        pairs.append((walk.packed(key, inside, depth + 1), walk.packed(item, inside, depth + 1)))
    if walk.ordered:
        pairs.sort()
    return Ext(tags.PAIRS, walk.pack([msgspec.Raw(data) for pair in pairs for data in pair]))


def _moment(tag: int) -> Callable[[Walk, Any, Place, int], Ext]:
    def encode(walk: Walk, value: datetime | time, place: Place, depth: int) -> Ext:
        try:
            zone = zone_label(value.tzinfo)
        except ValueError as error:
            raise Unencodable(render(place), str(error)) from None
        return Ext(tag, walk.pack([value.replace(tzinfo=None).isoformat(), value.fold, zone]))

    return encode


def _date(walk: Walk, value: date, place: Place, depth: int) -> Ext:
    return Ext(tags.DATE, value.isoformat().encode())


def _timedelta(walk: Walk, value: timedelta, place: Place, depth: int) -> Ext:
    return Ext(tags.TIMEDELTA, walk.pack([value.days, value.seconds, value.microseconds]))


def _uuid(walk: Walk, value: UUID, place: Place, depth: int) -> Ext:
    return Ext(tags.UUID, value.bytes)


_ENCODERS: dict[type, Callable[[Walk, Any, Place, int], object]] = {
    str: _text,
    int: _integer,
    float: _float,
    bool: _as_it_is,
    type(None): _as_it_is,
    bytes: _as_it_is,
    list: _list,
    dict: _dict,
    tuple: _tuple,
    set: _set,
    frozenset: _frozenset,
    Decimal: _decimal,
    UUID: _uuid,
    datetime: _moment(tags.DATETIME),
    date: _date,
    time: _moment(tags.TIME),
    timedelta: _timedelta,
}
