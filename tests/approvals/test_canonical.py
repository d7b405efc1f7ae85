"""One text for one value: what goes in comes out, or is refused with its place."""

import enum
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals import canonical
from runs.strictjson import NotStrictJSON

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def places(call, *args) -> list[str]:
    with pytest.raises(NotStrictJSON) as refused:
        call(*args)
    return [finding.pointer for finding in refused.value.findings]


@given(VALUES)
def test_the_text_of_a_text_is_itself(value):
    text = canonical.dumps(value)

    assert canonical.dumps(canonical.parse(text)) == text
    assert text.isascii()
    assert json.loads(text) == value


@pytest.mark.parametrize(
    "number", ["49.90", "1e2", "1E+2", "0.0000001", "-0", "-0.0", "1.0", str(2**70), "398.6500000000000001554312234"]
)
def test_numbers_stay_as_they_were_written(number):
    assert canonical.form(f'{{"b": {number},"a" :1}}') == f'{{"a":1,"b":{number}}}'


def test_keys_are_sorted_and_text_is_escaped():
    assert canonical.form('{"é":"🍸","a":"\\\\u0000"}') == '{"a":"\\\\u0000","\\u00e9":"\\ud83c\\udf78"}'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"x":NaN}', "/x"),
        ('{"x":-Infinity}', "/x"),
        ('{"x":1e400}', "/x"),
        ('{"x":1e-400}', "/x"),
        ('{"x":1e99999999999999999999}', "/x"),
        ('{"x":0e99999999999999999999}', "/x"),
        ('{"x":' + "9" * 5000 + "}", "/x"),
    ],
)
def test_numbers_that_no_double_holds_are_refused(text, place):
    """django-rest-framework#5235 (C28)."""
    assert places(canonical.parse, text) == [place]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a":["x\\u0000y"]}', "/a/0"),
        ('{"a":"\\ud83d"}', "/a"),
        ('{"\\ud83d":1}', ""),
        ('{"a":{"b":1,"b":2}}', "/a"),
        ("{", ""),
        ("", ""),
        ("[1] 2", ""),
    ],
)
def test_text_that_two_readers_would_read_differently_is_refused(text, place):
    """langgraph#1878, label-studio#3153, agent-zero#1773 (C27)."""
    assert places(canonical.parse, text) == [place]


def test_a_megabyte_of_emoji_is_lossless():
    """agent-zero#1773 (C27)."""
    value = {"family": "👩‍👧" * 100_000}

    assert canonical.parse(canonical.dumps(value)) == value


def test_deep_nesting_is_refused_quickly_and_a_hundred_levels_are_not():
    """technocore-chat#130 (C30)."""
    assert places(canonical.parse, "[" * 20_000 + "]" * 20_000) == [""]
    assert places(canonical.parse, "[" * 300 + "]" * 300) == ["/0" * 100]
    assert canonical.form("[" * 100 + "]" * 100)


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "value", [(1,), {1: "a"}, {"x"}, float("nan"), float("inf"), Colour.RED, b"x", Decimal("NaN"), object()]
)
def test_what_json_cannot_hold_exactly_is_refused_with_its_place(value):
    """langgraph#6718 (C29)."""
    assert places(canonical.dumps, {"deep": [value]}) == ["/deep/0"]


def test_decimals_are_written_digit_for_digit():
    assert canonical.dumps({"a": Decimal("49.90")}) == '{"a":49.90}'
