"""`migration-agent`: copy records in batches, a checkpoint per batch. Killed anywhere, it touches no record twice."""

import sys
import unicodedata
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from runs.authoring import DidNotHappen, Happened, RunContext, StepFailed, tool, workflow

COPY = """
    INSERT INTO examples_migrated_record (run_id, number, codepoint, name, category, touched)
    SELECT %s, number, codepoint, name, category, 1
    FROM unnest(%s::int[], %s::int[], %s::text[], %s::text[]) AS r(number, codepoint, name, category)
    ON CONFLICT (run_id, number) DO UPDATE SET touched = examples_migrated_record.touched + 1
"""
COUNT = "SELECT count(*), count(*) FILTER (WHERE touched > 1) FROM examples_migrated_record WHERE run_id = %s"
COPIED = "SELECT count(*) FROM examples_migrated_record WHERE run_id = %s AND number BETWEEN %s AND %s"


def named_characters(first: int, count: int) -> list[tuple[int, int, str, str]]:
    """Records `first` (from 1) and after: number, code point, name, category of each named Unicode character."""
    found: list[tuple[int, int, str, str]] = []
    number = 0
    for codepoint in range(sys.maxunicode + 1):
        name = unicodedata.name(chr(codepoint), "")
        if not name:
            continue
        number += 1
        if number >= first:
            found.append((number, codepoint, name, unicodedata.category(chr(codepoint))))
        if len(found) == count:
            break
    return found


def was_copied(run_id: str, first: int, count: int, *, idempotency_key: str) -> Happened | DidNotHappen:
    """Ask the table: a batch is one statement, so it is there whole or not at all."""
    with connection.cursor() as cursor:
        cursor.execute(COPIED, (UUID(run_id), first, first + count - 1))
        copied = cursor.fetchone()[0]
    return Happened(copied) if copied else DidNotHappen()


@tool(effect="probe", probe=was_copied, deadline=timedelta(seconds=5))
def copy_batch(run_id: str, first: int, count: int) -> int:
    """Copy one batch in one statement; returns how many records it held."""
    numbers, codepoints, names, categories = zip(*named_characters(first, count), strict=True)
    with connection.cursor() as cursor:
        cursor.execute(COPY, (UUID(run_id), list(numbers), list(codepoints), list(names), list(categories)))
    return len(numbers)


@tool(effect="read")
def count_touched_twice(run_id: str) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(COUNT, (UUID(run_id),))
        records, twice = cursor.fetchone()
    return {"records": records, "touched_more_than_once": twice}


@workflow("migration-agent", schema=1)
class MigrationAgent:
    def start(self, run: RunContext) -> object:
        wanted: Any = run.input or {}
        records, batch = wanted.get("records"), wanted.get("batch")
        if not (isinstance(records, int) and isinstance(batch, int) and 0 < batch <= records <= 30_000):
            raise StepFailed("the input needs records and batch: whole numbers, 0 < batch <= records <= 30000")
        run.state.update(records=records, batch=batch, done=0)
        return self.copy

    def copy(self, run: RunContext) -> object:
        done = run.state["done"]
        count = min(run.state["batch"], run.state["records"] - done)
        copied = run.step("copy batch", copy_batch, run_id=str(run.id), first=done + 1, count=count)
        run.state["done"] = done + copied
        run.history.append({"copied": {"from": done + 1, "to": done + copied}})
        return self.copy if run.state["done"] < run.state["records"] else self.check

    def check(self, run: RunContext) -> object:
        return run.complete(run.step("count", count_touched_twice, str(run.id)))


# For `manage.py certify examples.migration`.
certify_inputs = {"migration-agent": {"records": 5, "batch": 3}}
certify_samples = {
    "copy_batch": lambda run_id, first, count: count,
    "count_touched_twice": {"records": 5, "touched_more_than_once": 0},
}
