"""Checking arguments against a JSON Schema (draft 2020-12) that an agent sent: hostile until proven otherwise.

A schema may be 32 kB and 20 levels deep, refers only into itself, has its patterns run by RE2 (linear time) and is
given a budget of keyword checks, so that no schema can hold a web worker. Defaults are never applied.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any
from urllib.parse import unquote

import re2
from jsonschema import Draft202012Validator, SchemaError, ValidationError, validators
from jsonschema.protocols import Validator
from referencing import Registry

from approvals import canonical
from runs.strictjson import NotStrictJSON, escape

MAX_ARGS = 4 * 1024 * 1024  # characters; a person is to read them
MAX_BYTES = 32 * 1024
MAX_DEPTH = 20
MAX_ERRORS = 100
BUDGET = 100_000

Errors = list[tuple[str, str]]
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

_spent: ContextVar[list[int]] = ContextVar("spent")
_UNSUPPORTED = frozenset({"$dynamicRef", "$dynamicAnchor", "$id", "$recursiveRef", "$vocabulary"})
_LITERALS = frozenset({"const", "enum", "default", "examples"})
_SUBSCHEMAS = frozenset(
    {
        *("additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not", "oneOf"),
        *("prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


class TooMuchWork(Exception):
    """The schema asks for more checks than the budget holds."""


def schema_errors(text: str) -> Errors:
    """What is wrong with a schema, as (JSON pointer, message) pairs; empty when it can be used."""
    if len(text) > MAX_BYTES:
        return [("", f"is larger than {MAX_BYTES} bytes")]
    try:
        schema = canonical.parse(text)
    except NotStrictJSON as error:
        return [(finding.pointer, finding.detail) for finding in error.findings]
    if not isinstance(schema, dict):
        return [("", "must be an object")]
    errors = list(_house_rules(schema, schema, "", 0))
    if errors:
        return errors
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return [(_pointer(error.absolute_path), "is not valid JSON Schema")]
    return []


def errors_in(args: str, schema: str) -> Errors:
    """What is wrong with the arguments (JSON text), as (JSON pointer, message) pairs; empty when they fit.

    `schema` is text that `schema_errors` found nothing in. Arguments must be an object whatever the schema says.
    """
    if len(args) > MAX_ARGS:
        return [("", f"have {len(args)} characters as canonical text; the limit is {MAX_ARGS}")]
    try:
        value = canonical.parse(args)
    except NotStrictJSON as error:
        return [(finding.pointer, finding.detail) for finding in error.findings]
    if not isinstance(value, dict):
        return [("", "must be an object")]
    try:
        return _check(value, canonical.parse(schema), MAX_ERRORS)
    except TooMuchWork:
        return [("", "cannot be checked: the schema asks for too much work")]


def fits(args: str, schema: str) -> bool:
    """Whether canonical `args` satisfy `schema`. Raises `TooMuchWork` when that cannot be told."""
    return not _check(canonical.parse(args), canonical.parse(schema), 1)


def _check(value: Any, rules: Any, limit: int) -> Errors:
    token = _spent.set([BUDGET])
    try:
        errors = islice(_Rules(rules, registry=Registry()).iter_errors(value), limit)
        return sorted({(_pointer(error.absolute_path), error.message) for error in errors})
    except RecursionError as error:
        raise TooMuchWork from error
    finally:
        _spent.reset(token)


def _house_rules(root: Any, node: Any, at: str, depth: int, *, names: bool = False) -> Iterator[tuple[str, str]]:
    """Walk the schema. `names`: the keys of `node` are names that its author chose, not keywords."""
    if depth > MAX_DEPTH:
        yield at, f"is nested deeper than {MAX_DEPTH} levels"
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _house_rules(root, item, f"{at}/{index}", depth + 1)
    elif isinstance(node, dict):
        for key, item in node.items():
            here = f"{at}/{escape(key)}"
            if not names:
                yield from _keyword_errors(root, key, item, here)
            if names or key not in _LITERALS:
                yield from _house_rules(root, item, here, depth + 1, names=not names and key in _MAPS)


def _keyword_errors(root: Any, key: str, item: Any, at: str) -> Iterator[tuple[str, str]]:
    if key in _UNSUPPORTED:
        yield at, "is not supported"
    elif key == "$ref" and not _resolves(root, item):
        yield at, "must name a place in this schema (#/...)"
    elif key == "pattern" and isinstance(item, str):
        yield from _pattern_errors(item, at)
    elif key == "patternProperties" and isinstance(item, dict):
        for pattern in item:
            yield from _pattern_errors(pattern, f"{at}/{escape(pattern)}")


def _resolves(root: Any, reference: Any) -> bool:
    """Whether the reference leads to a subschema of this very schema, by keywords whose values were checked as such."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return False
    node, names = root, False
    for token in unquote(reference).split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and name.isascii() and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        elif isinstance(node, dict) and name in node and (names or name in _MAPS or name in _SUBSCHEMAS):
            node, names = node[name], not names and name in _MAPS
        else:
            return False
    return not names and isinstance(node, dict | bool)


def _pattern_errors(pattern: str, at: str) -> Iterator[tuple[str, str]]:
    try:
        _compiled(pattern)
    except re2.error:
        yield at, "is not a pattern that RE2 can run"


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _pointer(path: Any) -> str:
    return "".join(f"/{escape(str(token))}" for token in path)


# --- keywords whose usual form is slow, inexact or speaks to programmers -----------------------------------------


def _is_integer(checker: Any, instance: Any) -> bool:
    if isinstance(instance, Decimal):
        return instance == instance.to_integral_value()
    return isinstance(instance, int) and not isinstance(instance, bool)


def _pattern(validator: Validator, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _compiled(pattern).search(instance):
        yield ValidationError(f"must match {pattern}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            search = _compiled(pattern).search
            for key, item in instance.items():
                if search(key):
                    yield from validator.descend(item, subschema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        named = schema.get("properties", {})
        searches = [_compiled(pattern).search for pattern in schema.get("patternProperties", {})]
        for key, item in instance.items():
            if key in named or any(search(key) for search in searches):
                continue
            if allowed is False:
                yield ValidationError("is not expected", path=(key,))
            else:
                yield from validator.descend(item, allowed, path=key)


def _required(validator: Validator, names: list[str], instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield ValidationError("is missing", path=(name,))


def _multiple_of(validator: Validator, unit: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, int | Decimal) and not isinstance(instance, bool):
        try:
            fits = Decimal(instance) % Decimal(unit) == 0
        except InvalidOperation:  # the quotient has more digits than Decimal computes with
            fits = False
        if not fits:
            yield ValidationError(f"must be a multiple of {unit}")


def _unique_items(validator: Validator, wanted: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list) and len({_identity(item) for item in instance}) < len(instance):
        yield ValidationError("must not contain the same item twice")


def _identity(value: Any) -> Any:
    """Equal exactly for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((key, _identity(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_identity(item) for item in value)
    return type(value) is bool, value


_WORDS: dict[str, Callable[[Any], str]] = {
    "type": lambda kind: f"must be of type {' or '.join(kind) if isinstance(kind, list) else kind}",
    "minimum": lambda limit: f"must be at least {limit}",
    "maximum": lambda limit: f"must be at most {limit}",
    "exclusiveMinimum": lambda limit: f"must be more than {limit}",
    "exclusiveMaximum": lambda limit: f"must be less than {limit}",
    "minLength": lambda limit: f"must have at least {limit} characters",
    "maxLength": lambda limit: f"must have at most {limit} characters",
    "minItems": lambda limit: f"must have at least {limit} items",
    "maxItems": lambda limit: f"must have at most {limit} items",
    "minProperties": lambda limit: f"must have at least {limit} entries",
    "maxProperties": lambda limit: f"must have at most {limit} entries",
    "enum": lambda values: f"must be one of {', '.join(canonical.dumps(value) for value in values)}",
    "const": lambda value: f"must be {canonical.dumps(value)}",
    "anyOf": lambda _: "fits none of the forms that are allowed here",
    "oneOf": lambda _: "must fit exactly one of the forms that are allowed here",
    "not": lambda _: "has a form that is not allowed here",
    "contains": lambda _: "lacks an item of the kind that it must contain",
    "dependentRequired": lambda _: "lacks an entry that another entry calls for",
    "unevaluatedItems": lambda _: "has items that are not expected",
    "unevaluatedProperties": lambda _: "has entries that are not expected",
}


def _size(value: Any) -> int:
    return len(value) if isinstance(value, dict | list) else 0


def _worded(name: str, check: Keyword) -> Keyword:
    """Count each use against the budget, and say what is wanted without repeating the value, which may be huge."""
    words = _WORDS.get(name)

    def checked(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        left = _spent.get()
        left[0] -= 1 + _size(instance) + _size(rule) // 50
        if left[0] < 0:
            raise TooMuchWork
        for error in check(validator, rule, instance, schema) or ():
            if words is not None and not error.path:
                error.message = words(rule)
            yield error

    return checked


_KEYWORDS: dict[str, Keyword] = {
    **Draft202012Validator.VALIDATORS,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "required": _required,
    "multipleOf": _multiple_of,
    "uniqueItems": _unique_items,
}

_Rules = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    validators={name: _worded(name, check) for name, check in _KEYWORDS.items()},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)
