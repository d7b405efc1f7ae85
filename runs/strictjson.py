"""JSON that means one thing. What common readers guess about, this one refuses, and says where.

Refused: duplicate keys, NaN and Infinity, numbers outside a double's range, NUL, lone surrogates, nesting deeper than
`MAX_DEPTH`. Exact: a number with a fraction or an exponent is read as a `Number`, a `Decimal` that keeps its text.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isinf
from typing import Any, NoReturn, Self

MAX_DEPTH = 100
MAX_NUMBER_LENGTH = 400

_NOT_ZERO = re.compile(r"[-0.]*[1-9]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STEP = re.compile(r"""\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]|\.?([^.\[\]]+)|(.)""", re.DOTALL)


class Number(Decimal):
    """A number as it was written: 1e2 stays 1e2, where a `Decimal` alone would say 1E+2."""

    text: str

    def __new__(cls, text: str) -> Self:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, at the JSON pointer `pointer` ('' is the document)."""

    pointer: str
    detail: str
    code: str


class NotStrictJSON(ValueError):
    """The text is not JSON, or is JSON that two readers could read differently."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(f"{finding.pointer or 'document'}: {finding.detail}" for finding in findings))
        self.findings = findings


@dataclass(frozen=True)
class _Refused:
    """Stands in the tree where something was wrong, until the walk gives it its pointer."""

    detail: str
    code: str


def loads(data: bytes | str) -> Any:
    """Read one JSON document (UTF-8 when bytes). Raises `NotStrictJSON`, with every finding."""
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        value = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        _fail("", f"is not UTF-8: byte {error.start}", "not_utf8")
    except json.JSONDecodeError as error:
        _fail("", f"is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", "not_json")
    except RecursionError:
        _fail("", f"is nested deeper than {MAX_DEPTH} levels", "too_deep")
    findings = tuple(_findings(value))
    if findings:
        raise NotStrictJSON(findings)
    return value


def dumps(value: Any) -> str:
    """The canonical text of what `loads` gave: sorted keys, ASCII escapes, no spaces, numbers digit for digit."""
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}:{dumps(value[key])}" for key in sorted(value)) + "}"
        case list() | tuple():
            return "[" + ",".join(map(dumps, value)) + "]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, allow_nan=False)


def plain(value: Any, pointer: str = "") -> Any:
    """The same value with floats for Decimals, for code that expects what `json.loads` gives.

    Raises `NotStrictJSON` where a double cannot hold the number that was written.
    """
    match value:
        case dict():
            return {key: plain(item, f"{pointer}/{escape(key)}") for key, item in value.items()}
        case list():
            return [plain(item, f"{pointer}/{index}") for index, item in enumerate(value)]
        case Decimal():
            if Decimal(repr(float(value))) != value:
                _fail(pointer, "has more digits than a double holds: send it as a string", "inexact_number")
            return float(value)
        case _:
            return value


def escape(key: str) -> str:
    """One reference token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def pointer(path: str) -> str:
    """A path as the codec writes it (`state.order.items[3]["a b"]`) as a JSON pointer. A pointer stays as it is."""
    if path.startswith("/"):
        return path
    return "".join(f"/{escape(_step(*step.groups()))}" for step in _STEP.finditer(path))


def _step(index: str | None, quoted: str | None, plain: str | None, other: str | None) -> str:
    return str(json.loads(f'"{quoted}"')) if quoted is not None else index or plain or other or ""


def _fail(pointer: str, detail: str, code: str) -> NoReturn:
    raise NotStrictJSON((Finding(pointer, detail, code),)) from None


def _findings(root: Any) -> Iterator[Finding]:
    """Walk the tree without recursion: its depth is the sender's choice."""
    todo: list[tuple[Any, str, int]] = [(root, "", 0)]
    while todo:
        value, pointer, depth = todo.pop()
        if isinstance(value, str):
            if wrong := _wrong_text(value):
                yield Finding(pointer, *wrong)
        elif isinstance(value, _Refused):
            yield Finding(pointer, value.detail, value.code)
        elif isinstance(value, dict | list):
            if depth >= MAX_DEPTH:
                yield Finding(pointer, f"is nested deeper than {MAX_DEPTH} levels", "too_deep")
                return
            if isinstance(value, dict):
                for key in value:
                    if wrong := _wrong_text(key):
                        yield Finding(pointer, f"has a key that {wrong[0]}", wrong[1])
                todo.extend((item, f"{pointer}/{_shown(key)}", depth + 1) for key, item in value.items())
            else:
                todo.extend((item, f"{pointer}/{index}", depth + 1) for index, item in enumerate(value))


def _wrong_text(text: str) -> tuple[str, str] | None:
    if "\0" in text:
        return "contains a NUL character", "nul"
    if not text.isascii() and _SURROGATE.search(text):
        return "contains half of a surrogate pair", "lone_surrogate"
    return None


def _shown(key: str) -> str:
    return escape(key.encode("utf-8", "backslashreplace").decode("utf-8"))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Refused:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    seen: set[str] = set()
    twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return _Refused(f"has the key {json.dumps(twice)} twice", "duplicate_key")


def _whole(text: str) -> int | Number | _Refused:
    # -0 is a number of its own to a reader of doubles, and 0 to Python's int.
    return _out_of_range(text) or (Number(text) if text == "-0" else int(text))


def _fraction(text: str) -> Number | _Refused:
    try:
        return _out_of_range(text) or Number(text)
    except InvalidOperation:  # zero, with an exponent beyond even a Decimal's
        return _Refused("is a number that cannot be kept as it is written", "number_out_of_range")


def _out_of_range(text: str) -> _Refused | None:
    if len(text) > MAX_NUMBER_LENGTH or isinf(float(text)):
        return _Refused("is a number outside the range of a double", "number_out_of_range")
    if not float(text) and _NOT_ZERO.match(text):
        return _Refused("is a number too close to zero for a double", "number_out_of_range")
    return None


def _constant(text: str) -> _Refused:
    return _Refused(f"is {text}, which is not JSON", "not_a_number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_float=_fraction, parse_constant=_constant
)
