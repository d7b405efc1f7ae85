"""Waiting on conditions, never on time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], *, what: str, seconds: float = 30) -> T:
    """Poll until `condition` gives something true, and give that back. Fails after `seconds`, naming `what`."""
    ends = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > ends:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
