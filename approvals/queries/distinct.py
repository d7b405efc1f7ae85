"""Few different values among many rows: hopping along an index from one value to the next, never reading them all.

PostgreSQL has no such scan of its own; this is the recursive form of its wiki's page "Loose indexscan".
"""

from collections.abc import Sequence

from django.db import connection

TOOLS = """
WITH RECURSIVE hop (team, tool) AS (
    SELECT t.team, (SELECT min(tool) FROM approvals_approval WHERE team_id = t.team)
    FROM unnest(%s::bigint[]) AS t (team)
    UNION ALL
    SELECT hop.team, (SELECT min(tool) FROM approvals_approval WHERE team_id = hop.team AND tool > hop.tool)
    FROM hop WHERE hop.tool IS NOT NULL
)
SELECT DISTINCT tool FROM hop WHERE tool IS NOT NULL ORDER BY tool
"""
POOLS = """
WITH RECURSIVE hop (team, pools) AS (
    SELECT t.team, (
        SELECT pools FROM approvals_approval
        WHERE team_id = t.team AND status IN ('held', 'pending') ORDER BY pools LIMIT 1
    ) FROM unnest(%s::bigint[]) AS t (team)
    UNION ALL
    SELECT hop.team, (
        SELECT pools FROM approvals_approval
        WHERE team_id = hop.team AND status IN ('held', 'pending') AND pools > hop.pools ORDER BY pools LIMIT 1
    ) FROM hop WHERE hop.pools IS NOT NULL
)
SELECT team, pools FROM hop WHERE pools IS NOT NULL
"""


def tools_of(teams: Sequence[int]) -> list[str]:
    """The names of the tools that the teams' approvals have ever asked about, in order."""
    with connection.cursor() as cursor:
        cursor.execute(TOOLS, (list(teams),))
        return [tool for (tool,) in cursor.fetchall()]


def open_pools(teams: Sequence[int]) -> list[tuple[int, list[str]]]:
    """The sets of pools that the teams' open approvals have, each once, with its team."""
    with connection.cursor() as cursor:
        cursor.execute(POOLS, (list(teams),))
        return list(cursor.fetchall())
