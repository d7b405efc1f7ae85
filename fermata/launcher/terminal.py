"""Speaking to the person at the terminal, who may have closed it."""

import os
from contextlib import suppress


def say(text: str) -> None:
    """Write `text` and a line feed to standard output.

    Never raises: while everything is being stopped, a terminal that is gone must not leave servers running.
    """
    rest = f"{text}\n".encode(errors="replace")
    with suppress(OSError):
        while rest:
            rest = rest[os.write(1, rest) :]
