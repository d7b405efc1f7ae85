"""The table of failpoints that were struck, from what the crash tests left on their reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

PROPERTY = "struck"  # its value: failpoint, kind of effect, action


def table(reports: Sequence[pytest.TestReport]) -> list[str]:
    """Lines for people: a row for each failpoint, a column for each kind of effect and one for each action."""
    struck = [value for report in reports for name, value in report.user_properties if name == PROPERTY]
    if not struck:
        return []
    kinds = sorted({kind for _, kind, _ in struck})
    actions = sorted({action for _, _, action in struck})
    counts: Counter[tuple[str, str]] = Counter()
    for point, kind, action in struck:
        counts[point, kind] += 1
        counts[point, action] += 1
    columns = [*kinds, *actions]
    points = list(dict.fromkeys(point for point, _, _ in struck))
    rows = [f"{point:<20}" + "".join(f"{counts[point, column]:>8}" for column in columns) for point in points]
    lines = [f"{'failpoint':<20}" + "".join(f"{column:>8}" for column in columns), *rows]
    soaks = [f"soak: {value}" for report in reports for name, value in report.user_properties if name == "soak"]
    return [*lines, f"interruptions survived: {len(struck)}", *soaks]
