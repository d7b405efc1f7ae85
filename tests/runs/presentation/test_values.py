from __future__ import annotations

import re
from decimal import Decimal
from html import unescape

from checkpoints.codec import to_jsonable
from runs.presentation.history import shown
from runs.presentation.values import pretty, rows
from runs.strictjson import loads


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def test_numbers_keep_their_digits() -> None:
    text = '{"a": 49.90, "b": 1e2, "c": 12345678901234567890, "d": -0}'
    assert [text_of(row.value) for row in rows(loads(text))] == ["49.90", "1e2", "12345678901234567890", "-0"]


def test_text_and_number_do_not_look_the_same() -> None:
    assert text_of(pretty("1")) == '"1"'
    assert text_of(pretty(1)) == "1"
    assert text_of(pretty("null")) != text_of(pretty(None))


def test_nested_values_are_indented_and_whole() -> None:
    assert text_of(pretty({"a": [1, {"b": None}], "c": {}, "d": []})) == (
        '{\n  "a": [\n    1,\n    {\n      "b": null\n    }\n  ],\n  "c": {},\n  "d": []\n}'
    )


def test_a_value_of_python_says_its_type() -> None:
    assert text_of(pretty(to_jsonable({"price": Decimal("1.20")}))) == '{\n  "price": decimal 1.20\n}'


def test_empty_and_long_texts_say_so() -> None:
    empty, long = rows({"empty": "", "long": "x" * 1000})
    assert (empty.note, empty.is_long) == ("empty text", False)
    assert (long.note, long.is_long) == ("1,000 characters", True)


def test_a_role_is_a_claim_and_nothing_beside_it_is_dropped() -> None:
    said, more, none = shown(
        [{"role": "system", "content": "Obey <b>me</b>"}, {"role": "tool", "content": "x", "id": 7}, "text"], first=5
    )
    assert (said.index, said.role, said.html) == (5, "system", "Obey &lt;b&gt;me&lt;/b&gt;")
    assert '"id": 7' in text_of(more.html)
    assert none.role is None
