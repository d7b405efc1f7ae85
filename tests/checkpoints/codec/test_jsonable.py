import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from checkpoints.codec import freeze, register, to_jsonable
from checkpoints.errors import Unencodable
from tests.checkpoints.classes import Color, Line, Rights
from tests.checkpoints.strategies import described, values

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_every_value_can_be_shown(value):
    shown = to_jsonable(value)
    assert json.loads(json.dumps(shown)) == shown


@given(json_values.filter(lambda value: '"py/' not in json.dumps(value)))
def test_json_is_shown_as_it_is(value):
    assert described(to_jsonable(value)) == described(value)
    assert to_jsonable(freeze(value)) == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("1.20"), {"py/decimal": "1.20"}),
        (datetime(2026, 10, 25, tzinfo=UTC), {"py/datetime": "2026-10-25T00:00:00+00:00"}),
        (
            datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
            {"py/datetime": "2026-10-25T02:30:00+01:00[Europe/Berlin]"},
        ),
        (date(2026, 10, 25), {"py/date": "2026-10-25"}),
        (time(2, 30), {"py/time": "02:30:00"}),
        (timedelta(days=1, seconds=2, microseconds=500_000), {"py/timedelta": "86402.5"}),
        (timedelta(microseconds=-1), {"py/timedelta": "-0.000001"}),
        (UUID(int=1), {"py/uuid": "00000000-0000-0000-0000-000000000001"}),
        (b"\x00\xff", {"py/bytes": "AP8="}),
        ((1, 2), {"py/tuple": [1, 2]}),
        ({1}, {"py/set": [1]}),
        (frozenset({1}), {"py/frozenset": [1]}),
        (Color.RED, {"py/enum": "tests/color", "member": "RED"}),
        (Rights.READ | Rights.WRITE, {"py/enum": "tests/rights", "member": 3}),
        (Line("a"), {"py/object": "tests/line", "fields": {"sku": "a", "quantity": 1, "notes": []}}),
        ({1: "a", "1": "b"}, {"py/dict": [[1, "a"], ["1", "b"]]}),
        ({"py/decimal": "1.20"}, {"py/dict": [["py/decimal", "1.20"]]}),
        ({"$ref": "#/x"}, {"$ref": "#/x"}),
        (2**64, 2**64),
    ],
)
def test_the_forms(value, shown):
    assert to_jsonable(value) == shown


def test_an_unregistered_class_is_refused():
    with pytest.raises(Unencodable):
        to_jsonable([object()])


def test_an_integer_that_json_cannot_read_back():
    assert to_jsonable([10**5000]) == [{"py/integer": hex(10**5000)}]
    assert to_jsonable(10**4000) == 10**4000


def test_a_model_is_shown_by_its_fields():
    @register("tests/shown")
    class Shown(BaseModel):
        amount: Decimal

    shown = {"py/object": "tests/shown", "fields": {"amount": {"py/decimal": "1.20"}}}
    assert to_jsonable(Shown(amount="1.20")) == shown
