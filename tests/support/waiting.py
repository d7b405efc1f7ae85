"""Waiting on conditions, never on time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LONGEST_PAUSE = 0.25  # seconds


def until(condition: Callable[[], T], *, what: str, seconds: float = 60) -> T:
    """Poll until `condition` gives something true, and give that back. Fails after `seconds`, naming `what`.

    What is long in coming is asked for less often: asking takes the processor from those who are to bring it.
    """
    ends = time.monotonic() + seconds
    pause = 0.01
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > ends:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(pause)
        pause = min(pause * 1.3, LONGEST_PAUSE)
