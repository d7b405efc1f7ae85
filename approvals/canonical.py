"""The one text of a JSON value: sorted keys, no spaces, ASCII with escapes, numbers digit for digit.

Arguments live as this text from the request to the call, so that what was reviewed, what is stored, what is hashed and
what runs are the same bytes.
"""

import json
from decimal import Decimal
from math import isfinite
from typing import Any

from runs.strictjson import MAX_DEPTH, Finding, NotStrictJSON, escape, loads

parse = loads


def dumps(value: Any) -> str:
    """The canonical text of `value`: what `parse` gave, or plain Python values of JSON's own types.

    Floats are written as `repr` does. Raises `NotStrictJSON`, with a JSON pointer, for anything that would not come
    back the same from `parse`: tuples, subclasses, keys that are no strings, NaN, half a surrogate pair.
    """
    text = _dumps(value, "", 0)
    parse(text)
    return text


def form(text: str) -> str:
    """The canonical form of JSON `text`. Raises `NotStrictJSON`."""
    return _dumps(parse(text), "", 0)


def at(value: Any, pointer: str) -> Any:
    """What stands at a JSON pointer; None where nothing does."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def wrong_text(text: str) -> list[str]:
    """What keeps `text` from being stored and shown as it is: NUL, half a surrogate pair."""
    try:
        dumps(text)
    except NotStrictJSON as error:
        return [finding.detail for finding in error.findings]
    return []


def _dumps(value: Any, at: str, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise _refusal(at, f"is nested deeper than {MAX_DEPTH} levels", "too_deep")
    kind = type(value)
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise _refusal(at, f"has the key {key!r}, which is not a string", "not_json")
        items = (f"{json.dumps(key)}:{_dumps(value[key], f'{at}/{escape(key)}', depth + 1)}" for key in sorted(value))
        return "{" + ",".join(items) + "}"
    if kind is list:
        return "[" + ",".join(_dumps(item, f"{at}/{index}", depth + 1) for index, item in enumerate(value)) + "]"
    if value is None or kind in (bool, str, int):
        return json.dumps(value)
    if kind is float and isfinite(value):
        return repr(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    raise _refusal(at, f"is a {kind.__name__} that JSON cannot hold exactly", "not_json")


def _refusal(pointer: str, detail: str, code: str) -> NotStrictJSON:
    return NotStrictJSON((Finding(pointer, detail, code),))
