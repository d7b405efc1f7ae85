"""Where a value sits inside the value being saved: links made on the way down, text only for an error."""

import json
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple, TypeAlias
from uuid import UUID

from checkpoints.credentials import redacted


class Other(NamedTuple):
    """A step that is neither a string key nor an index, as it is shown."""

    text: str


Step: TypeAlias = "str | int | Other"
Place: TypeAlias = "tuple[Place | None, Step]"

SET_ITEM = Other("{…}")

_SHOWN_KEYS = (bool, float, type(None), Decimal, UUID, date, datetime)


def root(name: str) -> Place:
    return (None, Other(name))


def step_to(key: object) -> Step:
    """The step from a dict to the entry with this key, which may be of any type."""
    if type(key) is str:
        return key
    if type(key) is int and key.bit_length() <= 64:
        return key
    return Other(f"[{key!r}]" if type(key) in _SHOWN_KEYS else f"[<{type(key).__name__}>]")


def render(place: Place) -> str:
    """`state.order.items[3].when`; a key that is no identifier is shown in brackets, in ASCII."""
    texts = []
    link: Place | None = place
    while link is not None:
        link, step = link
        texts.append(_show(step))
    # A key may be a credential too, and a path ends up in logs.
    return redacted("".join(reversed(texts)))


def _show(step: Step) -> str:
    if isinstance(step, Other):
        return step.text
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() and step.isascii() else f"[{json.dumps(step)}]"


def contains(outer: Place, inner: Place) -> bool:
    """Whether `inner` lies inside `outer`, or is it."""
    link: Place | None = inner
    while link is not None:
        if link is outer:
            return True
        link = link[0]
    return False
