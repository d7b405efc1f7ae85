"""Where an agent's text may hide something: everything of a card that is not the server's own words."""

from collections.abc import Iterator
from typing import Any

from approvals import canonical
from approvals.models import Approval


def texts_of(approval: Approval) -> list[str]:
    """Title, description, tool, target, and every text of the arguments, keys included."""
    args = approval.args
    # Canonical text is ASCII: only an escape can stand for anything odd.
    inside = _texts(canonical.parse(args)) if "\\u" in args else ()
    return [approval.title, approval.description, approval.tool, approval.target, *inside]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
