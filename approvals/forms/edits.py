"""The form in which a reviewer edits arguments: a field for each, or the whole as JSON.

What is not touched keeps its value exactly, to the digit and the line ending: it is never parsed from what a browser
sends back.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from approvals import canonical
from runs.presentation.text import escaped, is_plain
from runs.presentation.values import holds_credentials
from runs.strictjson import NotStrictJSON, escape

PREFIX = "arg."
WHOLE = "args"
_ABSENT: Any = object()
_MAX_LINES = 16


@dataclass(frozen=True, slots=True)
class Field:
    """One control. `as_json`: what is typed is JSON, not text. `options` are (value, label) pairs of a select."""

    name: str
    label: str
    value: str
    original: Any
    as_json: bool
    hint: str
    widget: str
    options: tuple[tuple[str, str], ...] = ()
    inputmode: str = ""
    error: str = ""

    @property
    def id(self) -> str:
        return f"edit-{self.name.encode().hex()}"

    @property
    def lines(self) -> int:
        return min(_MAX_LINES, self.value.count("\n") + len(self.value) // 80 + 2)


class EditForm:
    """`args` and `schema` are JSON text; `posted` is what the browser sent, None for a form not yet sent.

    After `read()`, `fields` show what was typed, with what is wrong with it.
    """

    def __init__(self, *, args: str, schema: str, mode: str, posted: Mapping[str, str] | None = None) -> None:
        self._args = canonical.parse(args)
        self.may_be_json = not holds_credentials(self._args)
        self.mode = "json" if mode == "json" and self.may_be_json else "fields"
        self.fields = (
            [_whole(self._args)] if self.mode == "json" else list(_fields(self._args, canonical.parse(schema)))
        )
        self._posted = posted or {}

    def read(self) -> str | None:
        """The edited arguments as canonical text; None when something typed cannot be read."""
        read = [_read(field, self._posted.get(field.name, "")) for field in self.fields]
        self.fields = [field for field, _ in read]
        if any(field.error for field in self.fields):
            return None
        if self.mode == "json":
            return canonical.dumps(read[0][1])
        edited = dict(self._args)
        edited.update({field.name.removeprefix(PREFIX): value for field, value in read if value is not _ABSENT})
        return canonical.dumps(edited)

    def blame(self, errors: list[tuple[str, str]]) -> list[str]:
        """Put (JSON pointer, message) errors to their fields; gives back, as sentences, those that have none."""
        rest = []
        for pointer, message in errors:
            at = next((n for n, field in enumerate(self.fields) if _is_at(field, pointer)), None)
            if at is None:
                rest.append(f"{pointer.lstrip('/') or 'The arguments'} {message}.")
            else:
                place = pointer.removeprefix(f"/{escape(self.fields[at].label)}").lstrip("/")
                said = f"{place} {message}".strip()
                before = self.fields[at].error
                self.fields[at] = replace(self.fields[at], error=f"{before}; {said}" if before else said)
        return rest


def _is_at(field: Field, pointer: str) -> bool:
    start = f"/{escape(field.label)}"
    return field.name != WHOLE and (pointer == start or pointer.startswith(f"{start}/"))


def _read(field: Field, typed: str) -> tuple[Field, Any]:
    typed = typed.replace("\r\n", "\n")
    if field.widget == "masked":
        return field, field.original
    if typed == field.value.replace("\r\n", "\n"):
        return field, field.original
    field = replace(field, value=typed)
    if not field.as_json:
        return field, typed
    if not typed.strip() and field.original is _ABSENT:
        return field, _ABSENT
    try:
        value = canonical.parse(typed)
    except NotStrictJSON as error:
        wrong = str(error).removeprefix("document: ")
    else:
        wrong = ""
    if field.inputmode and (wrong or not _is_number(value)):
        wrong = "must be a number"
    return (replace(field, error=wrong), _ABSENT) if wrong else (field, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _whole(args: Any) -> Field:
    return Field(WHOLE, "Arguments", pretty_text(args), args, as_json=True, hint="a JSON object", widget="textarea")


def _fields(args: dict[str, Any], schema: Any) -> Iterator[Field]:
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    needed = schema.get("required", []) if isinstance(schema, dict) else []
    for name in {**properties, **args}:
        rule = properties.get(name)
        rule = rule if isinstance(rule, dict) else {}
        yield _field(name, args.get(name, _ABSENT), rule, is_needed=name in needed)


def _field(name: str, value: Any, rule: dict[str, Any], *, is_needed: bool) -> Field:
    kind = rule.get("type")
    hint = _hint(rule, is_set=value is not _ABSENT, is_needed=is_needed)
    base = Field(PREFIX + name, name, "", value, as_json=True, hint=hint, widget="input")
    if holds_credentials({name: value}):
        return replace(base, widget="masked", hint="holds a credential, and stays as it is")
    if options := _options(value, rule):
        shown = "" if value is _ABSENT else canonical.dumps(value)
        return replace(base, value=shown, options=options, widget="select")
    if (value is _ABSENT and kind == "string") or (
        isinstance(value, str) and kind in (None, "string") and is_plain(value)
    ):
        text = "" if value is _ABSENT else value
        is_long = len(text) > 80 or "\n" in text
        return replace(base, value=text, as_json=False, widget="textarea" if is_long else "input")
    shown = "" if value is _ABSENT else pretty_text(value)
    if _is_number(value) or (value is _ABSENT and kind in ("number", "integer")):
        return replace(base, value=shown, inputmode="decimal")
    return replace(base, value=shown, hint=f"{hint}, as JSON" if hint else "as JSON", widget="textarea")


def _options(value: Any, rule: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    choices = rule.get("enum")
    if choices is None and (rule.get("type") == "boolean" or isinstance(value, bool)):
        choices = [True, False]
    if not isinstance(choices, list) or any(isinstance(choice, dict | list) for choice in choices):
        return ()
    texts = {
        canonical.dumps(choice): escaped(choice) if isinstance(choice, str) else canonical.dumps(choice)
        for choice in choices
    }
    if value is _ABSENT:
        texts = {"": "not set", **texts}
    else:  # a value outside of its own schema is still shown
        texts.setdefault(canonical.dumps(value), pretty_text(value))
    return tuple(texts.items())


def _hint(rule: dict[str, Any], *, is_set: bool, is_needed: bool) -> str:
    kind = rule.get("type")
    parts = [kind if isinstance(kind, str) else "", "" if is_set else ("required" if is_needed else "not set")]
    parts += [f"{word} {rule[name]}" for name, word in (("minimum", "from"), ("maximum", "to")) if name in rule]
    return ", ".join(part for part in parts if part)


def pretty_text(value: Any, indent: str = "") -> str:
    """`value` as JSON to be edited: indented, numbers to the digit, odd characters as escapes."""
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        members = [f"{deeper}{_text(name)}: {pretty_text(item, deeper)}" for name, item in value.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(deeper + pretty_text(item, deeper) for item in value) + f"\n{indent}]"
    return _text(value) if isinstance(value, str) else canonical.dumps(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=not is_plain(text))
