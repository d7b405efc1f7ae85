"""JSON-like values as HTML, whole and exact: numbers as they were written, text quoted, nothing left out."""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from runs.presentation.text import visible

_LONG = 240  # characters; a longer text says how long it is, and scrolls


@dataclass(frozen=True, slots=True)
class Row:
    """One named value. `note` says what its look does not: that a text is empty, or how long it is."""

    name: SafeString
    value: SafeString
    note: str
    is_long: bool


def rows(value: dict[str, Any]) -> list[Row]:
    """The members of an object, each for a line of its own."""
    return [_row(name, member) for name, member in value.items()]


def pretty(value: Any) -> SafeString:
    """`value` as indented JSON in HTML. Takes what `strictjson.loads` and the codec's `to_jsonable` give."""
    out: list[str] = []
    _write(value, "", out)
    return mark_safe("".join(out))  # noqa: S308 - every part was escaped by format_html


def _row(name: str, value: Any) -> Row:
    html = pretty(value)
    if value == "":
        note = "empty text"
    elif isinstance(value, str) and len(value) > _LONG:
        note = f"{len(value):,} characters"
    else:
        note = ""
    return Row(visible(name, one_line=True), html, note, bool(note) and value != "")


def _write(value: Any, indent: str, out: list[str]) -> None:
    if isinstance(value, dict) and value:
        tag = next(iter(value))
        if len(value) == 1 and tag.startswith("py/") and isinstance(value[tag], str):
            out.append(format_html('<span class="json-type">{}</span> {}', tag[3:], visible(value[tag])))
            return
        members: list[tuple[str, Any]] = [
            (format_html('<span class="json-key">{}</span>: ', _quoted(name)), item) for name, item in value.items()
        ]
        _write_members("{", members, "}", indent, out)
    elif isinstance(value, list) and value:
        _write_members("[", [("", item) for item in value], "]", indent, out)
    else:
        out.append(_scalar(value))


def _write_members(start: str, members: list[tuple[str, Any]], end: str, indent: str, out: list[str]) -> None:
    deeper = indent + "  "
    out.append(start)
    for at, (label, item) in enumerate(members):
        out.append(f"{',' if at else ''}\n{deeper}{label}")
        _write(item, deeper, out)
    out.append(f"\n{indent}{end}")


def _scalar(value: Any) -> SafeString:
    if isinstance(value, str):
        return format_html('<span class="json-text">{}</span>', _quoted(value))
    if isinstance(value, (dict, list)):
        return format_html('<span class="json-word">{}</span>', "{}" if isinstance(value, dict) else "[]")
    if value is None or isinstance(value, bool):
        return format_html('<span class="json-word">{}</span>', json.dumps(value))
    return format_html(
        '<span class="json-number">{}</span>', str(value) if isinstance(value, Decimal) else json.dumps(value)
    )


def _quoted(text: str) -> SafeString:
    return format_html('<span class="json-quote">"</span>{}<span class="json-quote">"</span>', visible(text))
