"""JSON that means one thing."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import strictjson
from runs.strictjson import NotStrictJSON

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(min_codepoint=1, codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


def refusals(text: bytes | str) -> dict[str, str]:
    with pytest.raises(NotStrictJSON) as refused:
        strictjson.loads(text)
    return {finding.pointer: finding.code for finding in refused.value.findings}


@given(VALUES)
def test_it_reads_what_json_writes(value: object) -> None:
    assert strictjson.loads(json.dumps(value)) == value
    assert strictjson.loads(strictjson.dumps(value)) == value


@pytest.mark.parametrize(
    "number", ["49.90", "1e2", "1E+2", "-0", "-0.0", "0.1e1", "398.6500000000000001554312234", "1" * 300]
)
def test_it_keeps_numbers_digit_for_digit(number: str) -> None:
    assert strictjson.dumps(strictjson.loads(number)) == number


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1, "a": 2}', {"": "duplicate_key"}),
        ('{"x": [{"a": 1, "\\u0061": 2}]}', {"/x/0": "duplicate_key"}),
        # encode/django-rest-framework#5235
        ('{"x": NaN}', {"/x": "not_a_number"}),
        ('{"x": -Infinity}', {"/x": "not_a_number"}),
        ('{"x": 1e400}', {"/x": "number_out_of_range"}),
        ('{"x": 1e-400}', {"/x": "number_out_of_range"}),
        ("9" * 5000, {"": "number_out_of_range"}),
        ("0e" + "9" * 30, {"": "number_out_of_range"}),
        # langchain-ai/langgraph#1878, agent0ai/agent-zero#1773
        ('{"a/b~": ["a\\u0000b"]}', {"/a~1b~0/0": "nul"}),
        ('{"a": "\\ud83d"}', {"/a": "lone_surrogate"}),
        ('{"\\ud83d": 1}', {"": "lone_surrogate"}),
        ('{"a\\u0000": {}}', {"": "nul"}),
        (b'{"a": "\xff"}', {"": "not_utf8"}),
        ("", {"": "not_json"}),
        ("{} {}", {"": "not_json"}),
        ("'x'", {"": "not_json"}),
    ],
)
def test_it_refuses_what_could_be_read_in_two_ways(text: bytes | str, found: dict[str, str]) -> None:
    assert refusals(text) == found


def test_it_finds_everything_that_is_wrong() -> None:
    assert refusals('{"a": NaN, "b": ["\\u0000", 1e999]}') == {
        "/a": "not_a_number",
        "/b/0": "nul",
        "/b/1": "number_out_of_range",
    }


def test_it_takes_what_only_looks_wrong() -> None:
    assert strictjson.loads(r'["\\u0000", "\ud83c\udf78", "🍸"]') == ["\\u0000", "🍸", "🍸"]


@pytest.mark.parametrize("depth", [101, 300, 20_000])  # flop-labs/technocore-chat#130
def test_it_refuses_deep_nesting(depth: int) -> None:
    assert set(refusals("[" * depth + "]" * depth).values()) == {"too_deep"}


def test_it_takes_a_hundred_levels() -> None:
    assert strictjson.loads("[" * 100 + "]" * 100)


def test_plain_gives_floats() -> None:
    assert strictjson.plain(strictjson.loads('{"a": [1.50, 2, "x"]}')) == {"a": [1.5, 2, "x"]}


def test_plain_refuses_to_lose_digits() -> None:
    with pytest.raises(NotStrictJSON) as refused:
        strictjson.plain(strictjson.loads('{"a": [398.6500000000000001554312234]}'), "/state")
    assert [finding.pointer for finding in refused.value.findings] == ["/state/a/0"]


def test_a_number_is_a_decimal() -> None:
    assert strictjson.loads("49.90") == Decimal("49.9")
