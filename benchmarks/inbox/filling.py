"""Filling a database with cards: in sets, by the server, without its foreign keys and triggers being asked row by row.

One card is asked for as an agent would; the others are copies of it that differ in what lists sort, filter and search
by, and what reviewers were asked for is said in the services' words (tests/approvals/test_scale.py compares). What no
list reads (their checkpoints and grants, the revisions of most that are decided) is left out. Rows of all ages lie
between each other, so no page of cards lies together on the disk.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any

from django.db import connection

from approvals.models import Approval
from approvals.policies import Requirements
from approvals.policies.requirements import RISKS, TEAM, Seat, group_pool

DECIDED = 5  # for each card that is pending
TEAMS = 4
AGENTS = 10  # in each team, and one more that hardly asks
POOLS = ((group_pool("legal"),), (group_pool("finance"), TEAM), (TEAM,))
# Runs in trouble, queued runs and claims are as many in every database: what is compared is the number of cards.
TROUBLED = 200
QUEUED = 200
CLAIMED = 50
TABLES = (
    "runs_run",
    "runs_head",
    "runs_gate",
    "approvals_approval",
    "approvals_revision",
    "approvals_decision",
    "approvals_auditevent",
    "approvals_auditbody",
    "approvals_auditleaf",
)

# Ids that grow: the rows are inserted in the order of their primary keys, which spares a random read for each.
IDS = """
CREATE FUNCTION pg_temp.numbered(kind text, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
    SELECT (lpad(to_hex(n * {spread}), 8, '0') || substr(md5(kind || n), 9))::uuid
$$;
CREATE FUNCTION pg_temp.digest(kind text, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT encode(sha256(convert_to(kind || n, 'UTF8')), 'hex')
$$;
CREATE TEMP TABLE phrase AS
SELECT n, string_agg(
    (ARRAY['customer', 'account', 'order', 'late', 'parcel', 'broken', 'screen', 'twice', 'charged', 'invoice',
           'contract', 'missing', 'because', 'warehouse', 'support', 'ticket', 'promised', 'manager', 'asked', 'policy',
           'allows', 'within', 'thirty', 'days', 'balance', 'address', 'changed', 'moved', 'replacement',
           'subscription', 'cancelled', 'renewal'])[1 + (hashint8(n * 10 + word) & 31)], ' ') AS words
FROM generate_series(0, 9999) AS n, generate_series(1, 8) AS word GROUP BY n
"""
# Whose and what each card is. Agents, tools and risks are unevenly shared; one agent and one tool are rare.
CARDS = """
CREATE TEMP TABLE card AS
SELECT g.n, g.n %% {every} = 0 AS pending, t.team, a.agents[1 + CASE WHEN r.a < 0.0001 THEN {agents} ELSE
           (power(r.b, 2) * {agents})::int %% {agents} END] AS agent,
       CASE WHEN r.c < 0.0001 THEN 'ledger/close'
            ELSE (ARRAY['refund', 'mail/send', 'crm/update', 'deploy', 'invoice/pay', 'account/close', 'user/invite',
                        'stock/move', 'price/set', 'file/delete', 'dns/change', 'sql/run']
                 )[1 + (power(r.d, 2) * 12)::int %% 12] END AS tool,
       CASE WHEN r.e < 0.02 THEN 'high' WHEN r.e < 0.3 THEN 'medium' ELSE 'low' END AS risk,
       CASE WHEN r.f < 0.1 THEN 1 WHEN r.f < 0.2 THEN 2 ELSE 3 END AS pools, r.i < 0.0005 AS named, r.g, r.h, r.i
FROM generate_series(1, %(cards)s) AS g (n)
CROSS JOIN LATERAL (SELECT random() a, random() b, random() c, random() d, random() e, random() f, random() g,
                           random() h, random() i, g.n AS of) AS r
CROSS JOIN LATERAL (SELECT 1 + g.n / {every} %% {teams} AS place) AS p
JOIN (SELECT row_number() OVER (ORDER BY id) AS place, id AS team FROM runs_team) AS t USING (place)
JOIN (SELECT team_id, array_agg(id ORDER BY name) AS agents FROM runs_agent GROUP BY 1) AS a ON a.team_id = t.team
"""
# What it takes to decide a card: by its risk, its set of pools, and whether somebody is asked by name.
TERMS = """
CREATE TEMP TABLE term (risk text, set int, named bool, requirements text, pools text[], wanted text[]);
INSERT INTO term SELECT * FROM jsonb_to_recordset(%(terms)s) AS t (
    risk text, set int, named bool, requirements text, pools text[], wanted text[])
"""
# A run that is parked has one pending card; one that has ended had as many decided ones as `DECIDED`.
RUNS = """
INSERT INTO runs_run (id, kind, resume_mode, external_id, title, input, created_at, finished_at, error_type, error,
                      traceback, agent_id, team_id)
SELECT pg_temp.numbered(CASE WHEN c.pending THEN 'parked' ELSE 'ended' END, n / {every}), t.kind, t.resume_mode, '',
       'Run ' || n, t.input, now() - interval '365 days' * c.g, CASE WHEN c.pending THEN NULL ELSE now() END, '', '',
       '', c.agent, c.team
FROM card c, runs_run t WHERE t.id = %(template)s AND n %% {every} IN (0, 1)
"""
HEADS = """
INSERT INTO runs_head (run_id, status, reason, detail, workflow, schema, phase, turn, head_seq, epoch, draining, worker,
                       build, rings, crashes, failures, deliveries, updated_at)
SELECT r.id, CASE WHEN r.finished_at IS NULL THEN 'suspended' ELSE 'completed' END,
       CASE WHEN r.finished_at IS NULL THEN 'approval' ELSE '' END, '', t.workflow, t.schema, t.phase, t.turn,
       t.head_seq, 1, false, 'benchmark', t.build, 0, 0, 0, 1, r.created_at
FROM runs_run r, runs_head t WHERE t.run_id = %(template)s AND r.title LIKE 'Run %%'
"""
GATES = """
INSERT INTO runs_gate (run_id, turn, key, ordinal, phase, kind, question_hash, generation, superseded, opened_at)
SELECT h.run_id, h.turn, t.key, 0, t.phase, t.kind, t.question_hash, 0, 0, h.updated_at
FROM runs_head h, runs_gate t WHERE t.run_id = %(template)s AND h.status = 'suspended' AND h.run_id <> t.run_id
"""
APPROVALS = """
INSERT INTO approvals_approval (
    id, team_id, agent_id, run_id, kind, turn, key, generation, status, tool, tool_version, target, revision, args,
    action, review, snapshot_digest, title, description, risk, allowed, args_schema, asked, requirements, pools, wanted,
    grant_life, created_at, expires_at, settled_at, voted_by, announced_at, reminded_at
)
SELECT pg_temp.numbered('approval', c.n), c.team, c.agent,
       pg_temp.numbered(CASE WHEN c.pending THEN 'parked' ELSE 'ended' END, c.n / {every}), 'action',
       CASE WHEN c.pending THEN 1 ELSE c.n %% {every} END, 'call_' || c.n, 0,
       CASE WHEN c.pending THEN 'pending' WHEN c.h < 0.1 THEN 'rejected' WHEN c.h < 0.15 THEN 'expired'
            ELSE 'approved' END,
       c.tool, t.tool_version, '', 1,
       '{{"amount":"' || (c.g * 10000)::int || '.50","order":"A-' || (c.i * 899999)::int + 100000 || '"}}',
       pg_temp.digest('action', c.n), pg_temp.digest('review', c.n), t.snapshot_digest,
       CASE WHEN c.n / {every} %% 3 = 0 THEN 'Refund order A-' ELSE 'Update customer K-' END || c.n
       || CASE WHEN c.n %% 2003 = 0 THEN ' zebra' ELSE '' END,
       p.words, c.risk, t.allowed, t.args_schema, t.asked, r.requirements, r.pools, r.wanted, t.grant_life,
       at.created, at.due, at.settled, '{{}}', at.created + interval '5 s',
       CASE WHEN at.half <= coalesce(at.settled, now()) THEN at.half END
FROM card c
JOIN phrase p ON p.n = c.n %% 10000
JOIN term r ON r.risk = c.risk AND r.set = c.pools AND r.named = c.named
JOIN approvals_approval t ON t.run_id = %(template)s
CROSS JOIN LATERAL (
    SELECT created, due, settled, due - (due - created) / 2 AS half
    FROM (SELECT CASE WHEN c.pending THEN now() - interval '30 days' * c.g
                      ELSE now() - interval '365 days' * c.g END AS created,
                 CASE WHEN c.i < 0.3 THEN NULL ELSE now() + interval '1 hour' + interval '14 days' * c.h END AS due,
                 CASE WHEN c.pending THEN NULL ELSE now() - interval '365 days' * c.g * c.h END AS settled
         ) AS moments
) AS at
"""
DECISIONS = """
INSERT INTO approvals_decision (approval_id, outcome, revision, action, args, message, policies, at, decided_by_id)
SELECT id, status, 1, action, args, '', '[]', settled_at, %(decider)s FROM approvals_approval
WHERE settled_at IS NOT NULL
"""
REVISIONS = """
INSERT INTO approvals_revision (approval_id, number, args, action, review, requirements, diff, at)
SELECT id, 1, args, action, review, requirements, '', created_at FROM approvals_approval
WHERE turn = 1 AND run_id <> %(template)s
"""
# One for each card that is pending, and for one decided one beside it. The hashes are the template's: nobody looks.
EVENTS = """
INSERT INTO approvals_auditevent (chain, n, at, actor, type, body_commit, prev, hash, team_id)
SELECT 'approval:' || a.id, 1, a.created_at,
       CASE WHEN a.settled_at IS NULL THEN 'agent:' || a.agent_id ELSE 'person:' || %(decider)s END,
       CASE WHEN a.settled_at IS NULL THEN 'approval.requested' ELSE 'approval.settled' END,
       t.body_commit, t.prev, t.hash, a.team_id
FROM approvals_approval a, approvals_auditevent t
WHERE t.chain = 'run:' || %(template)s AND a.turn = 1 AND a.run_id <> %(template)s
"""
BODIES = """
INSERT INTO approvals_auditbody (event_id, salt, body)
SELECT e.id, t.salt, '{{"approval":"' || e.subject || '","outcome":"as it was"}}'
FROM approvals_auditevent e,
     (SELECT b.* FROM approvals_auditbody b JOIN approvals_auditevent f ON f.id = b.event_id
      WHERE f.chain = 'run:' || %(template)s) t
WHERE e.type IN ('approval.requested', 'approval.settled') AND NOT EXISTS (
    SELECT FROM approvals_auditbody b WHERE b.event_id = e.id)
"""
LEAVES = """
INSERT INTO approvals_auditleaf (event_id, no) SELECT e.id, e.id FROM approvals_auditevent e
WHERE NOT EXISTS (SELECT FROM approvals_auditleaf l WHERE l.event_id = e.id)
"""
IN_TROUBLE = """
UPDATE runs_head SET status = CASE WHEN number %% 2 = 0 THEN 'failed' ELSE 'blocked' END, reason = '', detail = 'gone',
       build = ''
FROM (SELECT id, row_number() OVER (ORDER BY id) AS number FROM runs_run
      WHERE title LIKE 'Run %%' AND finished_at IS NOT NULL ORDER BY id LIMIT %(troubled)s) AS r WHERE r.id = run_id
"""
FAILED = """
UPDATE runs_run SET error_type = 'Gone', finished_at = now() - interval '10 days' * random()
WHERE id IN (SELECT run_id FROM runs_head WHERE status = 'failed')
"""
IN_QUEUE = """
UPDATE runs_head SET status = 'queued', reason = '', updated_at = now() - interval '1 hour' * random(),
       rung_at = now() + interval '1 day', rings = 30
WHERE run_id IN (SELECT id FROM runs_run WHERE title LIKE 'Run %%' AND finished_at IS NOT NULL
                 ORDER BY id DESC LIMIT %(queued)s)
"""
TAKEN = """
UPDATE approvals_approval SET claimed_by_id = %(decider)s, claimed_until = now() + interval '1 day'
WHERE id IN (SELECT id FROM approvals_approval WHERE status = 'pending' AND team_id = 1 ORDER BY id LIMIT %(claimed)s)
"""
STEPS = (
    IDS,
    CARDS,
    TERMS,
    RUNS,
    HEADS,
    GATES,
    APPROVALS,
    REVISIONS,
    DECISIONS,
    EVENTS,
    BODIES,
    LEAVES,
    IN_TROUBLE,
    FAILED,
    IN_QUEUE,
    TAKEN,
)
INDEXES = """
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
FROM pg_index i WHERE i.indrelid = ANY (%s::regclass[]) AND NOT EXISTS (
    SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
"""


def fill(*, pending: int, template: str, named: str, decider: int, tell: Callable[[str], None]) -> None:
    """`pending` cards and `DECIDED` times as many decided ones like that of the run `template`.

    A few ask for `named` (a pool of one person); `decider` claims some and decided the others. `tell` hears of
    each step as it begins.
    """
    asked = Requirements.from_text(Approval.objects.get(run=template).requirements)
    values = {
        "cards": pending * (1 + DECIDED),
        "template": template,
        "terms": json.dumps(list(_terms(asked, named))),
        "decider": decider,
        "troubled": min(TROUBLED, pending // 4),
        "queued": min(QUEUED, pending // 4),
        "claimed": min(CLAIMED, pending // 16),
    }
    shape = {"spread": 2**32 // (values["cards"] + 1), "every": 1 + DECIDED, "agents": AGENTS, "teams": TEAMS}
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica; SET synchronous_commit = off; SELECT setseed(0.5)")
        cursor.execute("SET work_mem = '256MB'")
        cursor.execute(INDEXES, (list(TABLES),))
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f"DROP INDEX {name}")
        try:
            for number, step in enumerate(STEPS, 1):
                tell(f"filling {number}/{len(STEPS)}")
                cursor.execute(step.format(**shape), values)
        finally:
            _make(indexes, tell)
        tell("vacuum")
        cursor.execute("VACUUM ANALYZE")
    connection.close()  # and with it the settings above


def _make(indexes: Sequence[tuple[str, str]], tell: Callable[[str], None]) -> None:
    """Two at a time, those for the search first: they take longest, and PostgreSQL gives them no second process."""
    waiting = sorted(indexes, key=lambda index: "USING gin" not in index[1])
    with ThreadPoolExecutor(2) as threads:
        for number, name in enumerate(threads.map(_make_one, waiting), 1):
            tell(f"index {number}/{len(indexes)} {name}")


def _make_one(index: tuple[str, str]) -> str:
    name, definition = index
    with connection.cursor() as cursor:
        cursor.execute("SET maintenance_work_mem = '1GB'; SET max_parallel_maintenance_workers = 0")
        cursor.execute(definition)
    connection.close()  # this thread's
    return name


def _terms(asked: Requirements, named: str) -> Iterator[dict[str, Any]]:
    """What the services would write on each kind of card; `asked` is what they wrote on the one."""
    (seat,) = asked.seats
    for risk, (number, pools), is_named in product(RISKS, enumerate(POOLS, 1), (False, True)):
        wish = (Seat(policy=0, pools=(named,), count=1),) if is_named else ()
        terms = replace(asked, risk=risk, seats=(*wish, replace(seat, pools=pools)))
        yield {
            "risk": risk,
            "set": number,
            "named": is_named,
            "requirements": terms.to_text(),
            "pools": sorted(terms.pools),
            "wanted": sorted(terms.wanted),
        }
