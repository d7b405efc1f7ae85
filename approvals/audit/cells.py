"""One cell of a spreadsheet: what was written, shown so that no program takes it for a formula."""

import re
from decimal import Decimal

from runs.presentation.text import escaped

NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
FORMULA = re.compile(r"[\t\r\n]|[\s\0\ufeff]*[=+\-@]")


def cell(value: object) -> str | int | float | Decimal:
    """What to give to a `csv.writer` that quotes everything but numbers.

    Numbers stay numbers, `-5` and the text `-49.90` too. Text that a spreadsheet would run gets a leading apostrophe;
    characters that cannot be seen, or pose as others, are shown as escapes, so that no cell has a line break.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return value
    text = str(value)
    return f"'{escaped(text)}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else escaped(text)
