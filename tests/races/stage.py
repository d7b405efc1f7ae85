"""A scene that is put back before each race, and what is left of it afterwards."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection, transaction

from tests.races.places import Scene, place

# What belongs to a run. Its audit trail only ever grows.
OF_RUN = "approval_id IN (SELECT id FROM approvals_approval WHERE run_id = %(run)s)"
ROWS = {
    **dict.fromkeys(("approvals_vote", "approvals_revision", "approvals_grant", "approvals_decision"), OF_RUN),
    **dict.fromkeys(("approvals_approval", "runs_gate", "runs_step", "runs_head"), "run_id = %(run)s"),
    "runs_run": "id = %(run)s",
}
AS_IT_WAS = (
    "UPDATE test_clock SET ahead = interval '0'",
    "UPDATE approvals_policy SET is_active = false WHERE name LIKE 'Stricter%%'",
    "DELETE FROM approvals_automatic_stop",
    "INSERT INTO runs_membership SELECT * FROM member ON CONFLICT DO NOTHING",
)
LEFT = """
WITH chains AS (
    SELECT chain, json_agg(json_build_object('type', type, 'linked', linked) ORDER BY n) AS events FROM (
        SELECT id, chain, type, n, n = row_number() OVER links
            AND prev = coalesce(lag(hash) OVER links, decode(repeat('00', 32), 'hex')) AS linked
        FROM approvals_auditevent
        WHERE chain IN (SELECT 'approval:' || id FROM approvals_approval WHERE run_id = %(run)s)
        WINDOW links AS (PARTITION BY chain ORDER BY n)
    ) AS linked WHERE id > %(since)s GROUP BY chain
)
SELECT json_build_object(
    'run', h.status, 'reason', h.reason, 'kind', a.kind, 'status', a.status, 'amount', a.args::json ->> 'amount',
    'revision', a.revision, 'needed', a.requirements::json ->> 'approvers', 'claimed', claimer.username,
    'answered', g.answer IS NOT NULL,
    'votes', (
        SELECT json_agg(json_build_array(u.username, v.verdict, v.revision, v.void) ORDER BY u.username, v.id)
        FROM approvals_vote v JOIN auth_user u ON u.id = v.voter_id WHERE v.approval_id = a.id
    ),
    'decided', (
        SELECT json_build_object('outcome', d.outcome, 'by', u.username)
        FROM approvals_decision d LEFT JOIN auth_user u ON u.id = d.decided_by_id WHERE d.approval_id = a.id
    ),
    'grant', (
        SELECT json_build_object(
            'status', g.status, 'key', spent_key, 'outcome', outcome, 'spent', spent_at IS NOT NULL
        )
        FROM approvals_grant g WHERE g.approval_id = a.id
    ),
    'chain', coalesce(c.events, '[]')
)::text
FROM approvals_approval a
JOIN runs_head h ON h.run_id = a.run_id
LEFT JOIN runs_gate g ON g.run_id = a.run_id AND g.turn = a.turn AND g.key = a.key
LEFT JOIN auth_user claimer ON claimer.id = a.claimed_by_id
LEFT JOIN chains c ON c.chain = 'approval:' || a.id
WHERE a.run_id = %(run)s
ORDER BY a.id <> %(approval)s, a.id IS DISTINCT FROM %(card)s, a.supersedes_id = %(approval)s DESC, a.created_at, a.id
"""


class Stage:
    """The scene of a place, put back before each race: that is quicker than to make a new one by all its services."""

    def __init__(self, at: str) -> None:
        self.scene = place(at)
        ids = {"run": self.scene.run}
        restore = ["SET LOCAL session_replication_role = replica", *AS_IT_WAS]
        with connection.cursor() as cursor:
            for table, key in ROWS.items():
                cursor.execute(f"SELECT coalesce(jsonb_agg(to_jsonb(t)), '[]')::text FROM {table} t WHERE {key}", ids)
                ids[table] = cursor.fetchone()[0]
                restore.append(f"DELETE FROM {table} WHERE {key}")
            restore += [
                f"INSERT INTO {table} SELECT * FROM jsonb_populate_recordset(NULL::{table}, %({table})s)"
                for table in ROWS
            ]
            cursor.execute("CREATE TEMPORARY TABLE member AS SELECT * FROM runs_membership")
        self._restore, self._ids = "; ".join(restore), ids
        self.since = 0
        self.before = left_of(self.scene, 0)

    def reset(self) -> Scene:
        """All rows of the scene, the clock, the rules and the people as they were; the audit trail goes on growing."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(self._restore, self._ids)
            cursor.execute("SELECT max(id) FROM approvals_auditevent")
            self.since = cursor.fetchone()[0]
        return self.scene

    def close(self) -> None:
        self.reset()
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE member")


def left_of(scene: Scene, since: int) -> list[dict[str, Any]]:
    """What is left: the approvals, in the order in which they were asked, the scene's own and its card first."""
    with connection.cursor() as cursor:
        cursor.execute(LEFT, {"run": scene.run, "approval": scene.approval, "card": scene.card, "since": since})
        return [json.loads(row[0]) for row in cursor.fetchall()]
