"""Saved values as JSON, for pages and the API.

JSON values stay what they are. Anything else becomes a dict whose first key starts with `py/`:

    Decimal("1.20")   {"py/decimal": "1.20"}
    datetime          {"py/datetime": "2026-10-25T02:30:00+01:00[Europe/Berlin]"}
    date, time        {"py/date": "2026-10-25"}, {"py/time": "02:30:00"}
    timedelta         {"py/timedelta": "86402.5"}, in seconds
    UUID(...)         {"py/uuid": "..."}
    b"..."            {"py/bytes": "base64"}
    (1, 2)            {"py/tuple": [1, 2]}
    {1}, frozenset    {"py/set": [1]}, {"py/frozenset": [1]}
    an enum member    {"py/enum": "color", "member": "RED"}
    an object         {"py/object": "shop/order", "fields": {...}}
    {1: "a"}          {"py/dict": [[1, "a"]]}, and so is a dict with a string key that starts with `py/`
    10 ** 5000        {"py/integer": "0x..."}, when it has more digits than Python's JSON reads or writes
"""

import base64
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from checkpoints.codec.encoding import packed
from checkpoints.codec.frozen import FrozenDict, FrozenList
from checkpoints.codec.refusals import reason
from checkpoints.codec.registry import FIELDS_SET, EnumClass, entry_of
from checkpoints.errors import Unencodable

_MAX_BITS = 14_000  # under 4,300 decimal digits


def to_jsonable(value: Any) -> Any:
    """A value that the codec can save, as what `json.dumps` takes. Raises Unencodable."""
    show = _SHOWN.get(type(value))
    return show(value) if show is not None else _registered(value)


def _registered(value: Any) -> dict[str, Any]:
    entry = entry_of(type(value))
    if entry is None:
        raise Unencodable("value", reason(value))
    if isinstance(entry, EnumClass):
        return {"py/enum": entry.name, "member": entry.label(value)}
    fields = {name: to_jsonable(item) for name, item in entry.content(value).items() if name != FIELDS_SET}
    return {"py/object": entry.name, "fields": fields}


def _integer(value: int) -> Any:
    return value if value.bit_length() < _MAX_BITS else {"py/integer": hex(value)}


def _dict(value: dict[Any, Any]) -> dict[str, Any]:
    if all(type(key) is str and not key.startswith("py/") for key in value):
        return {key: to_jsonable(item) for key, item in value.items()}
    return {"py/dict": [[to_jsonable(key), to_jsonable(item)] for key, item in value.items()]}


def _list(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    return [to_jsonable(item) for item in value]


def _sorted(value: set[Any] | frozenset[Any]) -> list[Any]:
    return [to_jsonable(item) for item in sorted(value, key=packed)]


def _datetime(value: datetime) -> dict[str, str]:
    zone = value.tzinfo
    return {"py/datetime": f"{value.isoformat()}[{zone.key}]" if isinstance(zone, ZoneInfo) else value.isoformat()}


def _timedelta(value: timedelta) -> dict[str, str]:
    microseconds = value // timedelta(microseconds=1)
    return {"py/timedelta": str(Decimal(microseconds) / 1_000_000)}


_SHOWN: dict[type, Callable[[Any], Any]] = {
    str: lambda value: value,
    bool: lambda value: value,
    float: lambda value: value,
    type(None): lambda value: value,
    int: _integer,
    list: _list,
    FrozenList: _list,
    dict: _dict,
    FrozenDict: _dict,
    tuple: lambda value: {"py/tuple": _list(value)},
    set: lambda value: {"py/set": _sorted(value)},
    frozenset: lambda value: {"py/frozenset": _sorted(value)},
    bytes: lambda value: {"py/bytes": base64.b64encode(value).decode()},
    Decimal: lambda value: {"py/decimal": str(value)},
    UUID: lambda value: {"py/uuid": str(value)},
    datetime: _datetime,
    date: lambda value: {"py/date": value.isoformat()},
    time: lambda value: {"py/time": value.isoformat()},
    timedelta: _timedelta,
}
