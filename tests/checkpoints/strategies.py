"""Every value that the codec takes, and a comparison that is stricter than `==`."""

from dataclasses import fields, is_dataclass
from datetime import datetime, time, timedelta, timezone
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from pydantic import BaseModel

from checkpoints.codec import SecretRef
from tests.checkpoints.classes import Color, Level, Line, Order, Point, Priority, Rights

offsets = st.timedeltas(min_value=timedelta(hours=-23, minutes=-59), max_value=timedelta(hours=23, minutes=59))
zones = st.none() | st.timezones() | offsets.map(timezone) | st.builds(timezone, offsets, st.text(max_size=5))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**300), max_value=2**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.uuids()
    | st.datetimes(timezones=zones)
    | st.builds(datetime.replace, st.datetimes(timezones=zones), fold=st.sampled_from([0, 1]))
    | st.dates()
    | st.builds(time.replace, st.times(), tzinfo=zones, fold=st.sampled_from([0, 1]))
    | st.timedeltas()
    | st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,9}", fullmatch=True).map(SecretRef)
    | st.sampled_from([*Color, *Level, *Priority, Rights(0), Rights.READ, Rights.READ | Rights.WRITE])
)
hashables = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3) | st.builds(Point, x=inner, y=inner)
    ),
    max_leaves=6,
)
values = st.recursive(
    hashables,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.sets(hashables, max_size=4)
        | st.builds(Line, sku=st.text(max_size=5), quantity=inner)
        | st.builds(Point, x=inner)
        | st.builds(Order, id=st.text(max_size=5), amount=inner, color=st.sampled_from(Color))
        | st.builds(Order, id=st.text(max_size=5))
    ),
    max_leaves=20,
)
states = st.dictionaries(st.text(max_size=8), values, max_size=4) | st.dictionaries(hashables, values, max_size=4)


def described(value: Any) -> Any:
    """A value with the types of all that is in it, so that 1, True, 1.0 and Decimal(1) differ."""
    kind = type(value)
    if kind is dict:
        return kind, [(described(key), described(item)) for key, item in value.items()]
    if kind in (list, tuple):
        return kind, [described(item) for item in value]
    if kind in (set, frozenset):
        return kind, sorted((described(item) for item in value), key=repr)
    if kind in (datetime, time):
        return kind, value.replace(tzinfo=None).isoformat(), value.fold, type(value.tzinfo), str(value.tzinfo)
    if issubclass(kind, BaseModel):
        return kind, sorted(value.model_fields_set), [(name, described(item)) for name, item in value]
    if is_dataclass(kind):
        return kind, [described(getattr(value, field.name)) for field in fields(kind)]
    return kind, value.int if kind is UUID else repr(value)
