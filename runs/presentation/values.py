"""JSON-like values as HTML, whole and exact: numbers as they were written, text quoted, credentials masked."""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from runs.presentation.masking import masked
from runs.presentation.text import visible

_LONG = 240  # characters; a longer text says how long it is, and scrolls


@dataclass(frozen=True, slots=True)
class Row:
    """One named value. `note` says what its look does not: that a text is empty, or how long it is."""

    name: SafeString
    value: SafeString
    note: str
    is_long: bool


def rows(value: dict[str, Any], *, mask: bool = True) -> list[Row]:
    """The members of an object, each for a line of its own."""
    return [_row(name, member, mask) for name, member in value.items()]


def pretty(value: Any, *, name: str = "", mask: bool = True) -> SafeString:
    """`value`, which goes by `name`, as indented JSON in HTML. Takes what `strictjson.loads` and `to_jsonable` give."""
    return _Writer(mask).write(value, name)


def holds_credentials(value: Any) -> bool:
    """Whether `pretty` masks anything of a JSON value."""
    return _credentials_in(value, "")


def _credentials_in(value: Any, name: str) -> bool:
    if isinstance(value, str):
        return masked(value, name) != value
    if isinstance(value, dict):
        return any(masked(key) != key or _credentials_in(item, key) for key, item in value.items())
    return isinstance(value, list) and any(_credentials_in(item, name) for item in value)


def _row(name: str, value: Any, mask: bool) -> Row:
    is_long = isinstance(value, str) and len(value) > _LONG
    note = f"{len(value):,} characters" if is_long else "empty text" if value == "" else ""
    return Row(visible(name, one_line=True), _Writer(mask).write(value, name), note, is_long)


class _Writer:
    def __init__(self, mask: bool) -> None:
        self._mask = mask
        self._out: list[str] = []

    def write(self, value: Any, name: str = "") -> SafeString:
        self._write(value, name, "")
        return mark_safe("".join(self._out))  # noqa: S308 - every part was escaped by format_html

    def _write(self, value: Any, name: str, indent: str) -> None:
        if isinstance(value, dict) and value:
            tag = next(iter(value))
            if len(value) == 1 and tag.startswith("py/") and isinstance(value[tag], str):
                self._out.append(
                    format_html('<span class="json-type">{}</span> {}', tag[3:], self._text(value[tag], name))
                )
                return
            self._members("{", "}", list(value.items()), indent)
        elif isinstance(value, list) and value:
            self._members("[", "]", [(None, item) for item in value], indent, name)
        else:
            self._out.append(self._scalar(value, name))

    def _members(self, start: str, end: str, members: list[Any], indent: str, name: str = "") -> None:
        deeper = indent + "  "
        self._out.append(start)
        for at, (key, item) in enumerate(members):
            self._out.append(f"{',' if at else ''}\n{deeper}")
            if key is not None:
                self._out.append(format_html('<span class="json-key">{}</span>: ', self._quoted(key, "")))
            self._write(item, name if key is None else key, deeper)
        self._out.append(f"\n{indent}{end}")

    def _scalar(self, value: Any, name: str) -> SafeString:
        if isinstance(value, str):
            return format_html('<span class="json-text">{}</span>', self._quoted(value, name))
        if isinstance(value, dict | list):
            return format_html('<span class="json-word">{}</span>', "{}" if isinstance(value, dict) else "[]")
        if value is None or isinstance(value, bool):
            return format_html('<span class="json-word">{}</span>', json.dumps(value))
        digits = str(value) if isinstance(value, Decimal) else json.dumps(value)
        return format_html('<span class="json-number">{}</span>', digits)

    def _quoted(self, text: str, name: str) -> SafeString:
        shown = self._text(text, name)
        return format_html('<span class="json-quote">"</span>{}<span class="json-quote">"</span>', shown)

    def _text(self, text: str, name: str) -> SafeString:
        return visible(masked(text, name) if self._mask else text)
