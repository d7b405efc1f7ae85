"""What changed between two sets of arguments, place by place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from approvals import canonical
from runs.presentation.text import visible
from runs.presentation.values import pretty

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Change:
    """One place (`items[3].price`) that differs; `before` is None where it is new, `after` where it is gone."""

    place: SafeString
    before: SafeString | None
    after: SafeString | None


_MISSING = object()


def changes(before: str, after: str) -> list[Change]:
    """The differences between two canonical texts. Numbers differ when their digits do, as 49.9 and 49.90."""
    return list(_compare("", canonical.parse(before), canonical.parse(after)))


def _compare(place: str, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            yield from _compare(_member(place, name), before.get(name, _MISSING), after.get(name, _MISSING))
    elif isinstance(before, list) and isinstance(after, list):
        for at in range(max(len(before), len(after))):
            yield from _compare(f"{place}[{at}]", _item(before, at), _item(after, at))
    elif before is _MISSING or after is _MISSING or canonical.dumps(before) != canonical.dumps(after):
        yield Change(visible(place or "arguments", one_line=True), _shown(before), _shown(after))


def _member(place: str, name: str) -> str:
    if not _PLAIN_NAME.fullmatch(name):
        return f'{place}["{name}"]'
    return f"{place}.{name}" if place else name


def _item(items: list[Any], at: int) -> Any:
    return items[at] if at < len(items) else _MISSING


def _shown(value: Any) -> SafeString | None:
    return None if value is _MISSING else pretty(value)
