"""Before a deploy: which unfinished runs this code could not go on with. It reads, and changes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from checkpoints.errors import Unreadable
from runs.bodies import opened, outcome_place
from runs.engine.rehydration import find_flow, load_saved, upcast
from runs.engine.signals import Unrehydratable
from runs.engine.tools import find_tool
from runs.hooks import Cursor, hooks

BATCH = 100  # runs; their snapshots are read one by one

UNFINISHED = """
    SELECT h.run_id, h.status, h.workflow, h.schema, h.phase
    FROM runs_head h JOIN runs_run r ON r.id = h.run_id
    WHERE h.status IN ('queued', 'running', 'suspended', 'blocked')
      AND r.resume_mode IN ('hosted', 'workflow') AND h.run_id > %s
    ORDER BY h.run_id LIMIT %s
"""
READ_INPUT = "SELECT input FROM runs_run WHERE id = %s"
RECORDED = """
    SELECT s.run_id, s.turn, s.key, s.tool, s.effect, s.outcome
    FROM runs_step s JOIN runs_head h ON h.run_id = s.run_id AND h.turn = s.turn
    WHERE s.run_id = ANY(%s) ORDER BY s.run_id, s.ordinal
"""


@dataclass(frozen=True)
class Candidate:
    """An unfinished run whose code is to be found here."""

    run_id: UUID
    status: str
    workflow: str
    schema: int
    phase: str


@dataclass(frozen=True)
class Finding:
    """A run that this code could not resume, and every reason found, each a sentence."""

    run: Candidate
    reasons: tuple[str, ...]


def unfinished() -> Iterator[list[Candidate]]:
    """Every unfinished run that a worker of this deployment would execute, in batches."""
    last = UUID(int=0)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(UNFINISHED, (last, BATCH))
            batch = [Candidate(*row) for row in cursor.fetchall()]
        if not batch:
            return
        yield batch
        last = batch[-1].run_id


def examine(batch: list[Candidate]) -> list[Finding]:
    """The runs of the batch that this code could not resume."""
    with connection.cursor() as cursor:
        tools = _tools(cursor, [run.run_id for run in batch])
        reasons = {run: (*_snapshot(cursor, run), *tools[run.run_id]) for run in batch}
    return [Finding(run, found) for run, found in reasons.items() if found]


def _snapshot(cursor: Cursor, run: Candidate) -> tuple[str, ...]:
    try:
        flow = find_flow(workflow=run.workflow, schema=run.schema, phase=run.phase)
        cursor.execute(READ_INPUT, (run.run_id,))
        upcast(flow, load_saved(cursor, run.run_id, input=cursor.fetchone()[0]).snapshot)
    except Unrehydratable as reason:
        return (str(reason),)
    return ()


def _tools(cursor: Cursor, run_ids: list[UUID]) -> dict[UUID, list[str]]:
    """What is wrong with the calls that the open turns recorded, or asked about."""
    found: dict[UUID, list[str]] = defaultdict(list)
    cursor.execute(RECORDED, (run_ids,))
    for run_id, turn, key, name, effect, outcome in cursor.fetchall():
        tool = find_tool(name)
        if tool is None:
            found[run_id].append(f"tool {name!r}, recorded by step {key!r}, is not registered")
        elif tool.effect != effect:
            found[run_id].append(f"tool {name!r} was {effect!r} when step {key!r} called it, now it is {tool.effect!r}")
        if outcome is not None:
            found[run_id] += _outcome(run_id, turn, key, outcome)
    for run_id, reason in hooks().unperformable(cursor, run_ids=run_ids):
        found[run_id].append(reason)
    return found


def _outcome(run_id: UUID, turn: int, key: str, body: bytes) -> list[str]:
    try:
        opened(body, outcome_place(run_id, turn, key), what="outcome")
    except Unreadable as error:
        return [f"what step {key!r} recorded: {error}"]
    return []
