"""Items of a run's history. Their roles are claims of whoever wrote them, and are labelled so."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString

from checkpoints.codec import to_jsonable
from runs.presentation.masking import masked
from runs.presentation.text import visible
from runs.presentation.values import pretty

ITEMS = 50  # at most, on one page


@dataclass(frozen=True, slots=True)
class HistoryItem:
    index: int
    role: SafeString | None
    html: SafeString
    is_text: bool = False


def shown(items: Iterable[Any], first: int) -> list[HistoryItem]:
    """`items` as saved, the first of which has index `first`."""
    return [_item(index, to_jsonable(item)) for index, item in enumerate(items, first)]


def _item(index: int, item: Any) -> HistoryItem:
    role = item.get("role") if isinstance(item, dict) else None
    if not isinstance(role, str):
        return HistoryItem(index, None, pretty(item))
    rest = {name: value for name, value in item.items() if name != "role"}
    said = rest["content"] if rest.keys() == {"content"} else rest
    shown_role = visible(role, one_line=True)
    if isinstance(said, str):
        return HistoryItem(index, shown_role, visible(masked(said)), is_text=True)
    return HistoryItem(index, shown_role, pretty(said))
