"""What goes in comes out equal and of the same type."""

import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from pydantic import BaseModel, ConfigDict, PrivateAttr

from checkpoints import codec
from checkpoints.codec import decode, encode, register, roundtrip, saved
from checkpoints.errors import SnapshotTooLarge
from tests.checkpoints.classes import Color, Level, Line, Point, Priority, Rights
from tests.checkpoints.strategies import described, values


@given(values)
def test_every_value_comes_back_with_every_type_in_it(value):
    assert described(decode(encode(value))) == described(value)
    assert described(roundtrip(value)) == described(value)
    body, copy = saved(value)
    assert body == encode(value)
    assert described(copy) == described(value)


def test_nothing_is_saved_that_could_not_be_read_again(monkeypatch):
    monkeypatch.setattr(codec, "MAX_BYTES", 100)
    assert saved("x" * 98)[1] == "x" * 98
    with pytest.raises(SnapshotTooLarge):
        saved("x" * 99)


@given(values)
def test_equal_bytes_come_from_what_came_back(value):
    assert encode(decode(encode(value))) == encode(value)


@pytest.mark.parametrize(
    "value",
    [
        {1: "a", "1": "b"},  # C29, agent-framework#8256
        {"outer": {"inner": [Color.RED, {"deep": Level.HIGH}]}},  # C29, langgraph#6718
        {(1, 2), (3, (4, 5))},  # C29, langgraph#8388
        Decimal("398.6500000000000001554312234"),  # C29, django-rest-framework#8319
        Decimal("-0"),
        Decimal("0E-30"),
        Decimal("1E+400"),
        datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 10, 25, 2, 30, tzinfo=UTC),
        datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=2), "CEST")),
        datetime(2026, 10, 25, 2, 30),  # noqa: DTZ001 - a naive time stays naive
        b"\x00\xff",
        "a\u0000b",  # C27, langgraph#1878
        "\\u0000",
        "🍸",
        True,
        1,
        1.0,
        -0.0,
        2**64,
        -(2**63) - 1,
        UUID(int=2**128 - 1),
        Priority.HIGH,
        Rights.READ | Rights.WRITE,
        frozenset({Point(1, (2, 3))}),
        Line("A-7", Decimal("2.50"), [{"note": "x"}]),
    ],
)
def test_values_that_were_lost_elsewhere(value):
    assert described(decode(encode(value))) == described(value)


def test_large_values():
    assert decode(encode(10**5000)) == 10**5000
    assert decode(encode("👩\u200d👧" * 100_000)) == "👩\u200d👧" * 100_000  # C27


def test_a_set_has_the_same_bytes_whatever_its_order():
    words = [f"word {number}" for number in range(50)]
    shuffled = random.Random(7).sample(words, len(words))
    assert encode(set(words)) == encode(set(shuffled))


def test_the_order_of_a_dict_is_kept():
    assert list(decode(encode({"b": 1, "a": 2}))) == ["b", "a"]
    assert list(decode(encode({2: 1, 1: 2}))) == [2, 1]


def test_a_decimal_does_not_depend_on_the_context():
    value = Decimal("398.6500000000000001554312234")
    with localcontext() as context:
        context.prec = 3
        assert str(decode(encode(value))) == str(value)


def test_an_immutable_value_may_be_in_two_places():
    shared = (1, Point(1, 2), frozenset({3}), "text")
    assert decode(encode([shared, shared])) == [shared, shared]


@register("tests/open-order")
class OpenOrder(BaseModel):
    model_config = ConfigDict(extra="allow")
    id: str
    amount: Decimal = Decimal("1.20")
    lines: list[Line] = []
    _seen: int = PrivateAttr(default=0)


def test_a_pydantic_model_comes_back_whole():
    # C29
    order = OpenOrder(id="A-7", lines=[Line("x")], color=Color.RED)
    order._seen = 3
    back = decode(encode({"order": order}))["order"]
    assert back == order
    assert type(back) is OpenOrder
    assert (back._seen, back.color, type(back.lines[0])) == (3, Color.RED, Line)
    assert back.model_fields_set == order.model_fields_set


def test_restoring_runs_no_code_of_the_class():
    @register("tests/counted")
    class Counted(Line):
        def __init__(self, sku):
            raise AssertionError

    with pytest.raises(TypeError):
        register("tests/not-a-dataclass")(object)
    counted = object.__new__(Counted)
    vars(counted).update(sku="a", quantity=1, notes=[])
    assert type(decode(encode(counted))) is Counted
