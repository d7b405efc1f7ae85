"""What people were asked about and may still be performed, against the tools of the deployed code."""

from collections.abc import Sequence
from uuid import UUID

from approvals.gates import tool_version
from runs.engine.tools import find_tool
from runs.hooks import Cursor

OPEN_OR_GRANTED = """
    SELECT a.run_id, a.key, a.tool, a.tool_version
    FROM approvals_approval a
    JOIN runs_head h ON h.run_id = a.run_id AND h.turn = a.turn
    LEFT JOIN approvals_grant g ON g.approval_id = a.id
    WHERE a.run_id = ANY(%s) AND a.kind = 'action'
      AND (a.status IN ('pending', 'held') OR g.status IN ('ready', 'spent', 'in_doubt'))
    ORDER BY a.run_id, a.created_at
"""


def unperformable(cursor: Cursor, *, run_ids: Sequence[UUID]) -> list[tuple[UUID, str]]:
    """See `runs.hooks.Hooks.unperformable`."""
    cursor.execute(OPEN_OR_GRANTED, (list(run_ids),))
    found = []
    for run_id, key, name, version in cursor.fetchall():
        tool = find_tool(name)
        if tool is None:
            found.append((run_id, f"tool {name!r}, asked about at gate {key!r}, is not registered"))
        elif tool_version(tool) != version:
            why = f"tool {name!r} is not declared as it was at gate {key!r}: what people decide there would not count"
            found.append((run_id, why))
    return found
