"""What an edit changed, as an RFC 6902 patch.

Written here because numbers must be compared as they were written: for the usual libraries 49.9 and 49.90, and true
and 1, are equal, and an edit between them would leave no trace.
"""

from collections.abc import Iterator
from typing import Any

from approvals import canonical
from runs.strictjson import escape


def patch(before: str, after: str) -> str:
    """The operations that turn one canonical text into the other, as canonical JSON text; `[]` when they are equal."""
    return canonical.dumps(list(_operations(canonical.parse(before), canonical.parse(after), "")))


def _operations(before: Any, after: Any, at: str) -> Iterator[dict[str, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() - after.keys()):
            yield {"op": "remove", "path": f"{at}/{escape(key)}"}
        for key in sorted(after):
            path = f"{at}/{escape(key)}"
            if key in before:
                yield from _operations(before[key], after[key], path)
            else:
                yield {"op": "add", "path": path, "value": after[key]}
    elif isinstance(before, list) and isinstance(after, list):
        both = min(len(before), len(after))
        for index in range(both):
            yield from _operations(before[index], after[index], f"{at}/{index}")
        for index in reversed(range(both, len(before))):
            yield {"op": "remove", "path": f"{at}/{index}"}
        for value in after[both:]:
            yield {"op": "add", "path": f"{at}/-", "value": value}
    elif canonical.dumps(before) != canonical.dumps(after):
        yield {"op": "replace", "path": at, "value": after}
