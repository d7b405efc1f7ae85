"""RE2 over bytes: linear time, and data that need not be text."""

from typing import Any

import re2


def compiled(pattern: bytes, *, longest: bool = False) -> Any:
    """`pattern` with one byte to a character; `longest` prefers the longest match to the first alternative."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.longest_match = longest
    return re2.compile(pattern, options)
