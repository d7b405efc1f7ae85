"""What names a row by its key finds it by its key, also where PostgreSQL believes that nothing is open or queued.

Counted are pages of tables and indexes. Each act is done three times, and the least is taken: an autovacuum reads too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from approvals.models import Approval
from approvals.services.conclusion import conclude
from approvals.services.grants import spend
from approvals.states import ApprovalStatus
from runs.engine.connection import engine_connection
from runs.engine.executor import CLAIM_OLDEST, CLAIM_ONE, _claim
from runs.engine.finishing import Ending, finish
from runs.engine.ownership import Ownership
from runs.models import Agent, Run, RunHead
from runs.services.starting import start_run
from runs.services.sweeping import UNRUNG
from tests.approvals.scenes import ask, open_on
from tests.engine.conftest import Driver, driver
from tests.races.test_fences import checkpoint

__all__ = ["driver"]

MANY = 3000
FEW = 250  # pages: it takes 15 to 160, what is written and its entries in all indexes

COPY = """
WITH runs AS (
    INSERT INTO runs_run SELECT (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid()))).*
    FROM runs_run r, generate_series(1, %(count)s) WHERE r.id = %(run)s RETURNING id
), heads AS (
    INSERT INTO runs_head SELECT (jsonb_populate_record(h, jsonb_build_object('run_id', runs.id))).*
    FROM runs_head h, runs WHERE h.run_id = %(run)s
), approvals AS (
    INSERT INTO approvals_approval
    SELECT (jsonb_populate_record(a, jsonb_build_object('id', runs.id, 'run_id', runs.id))).*
    FROM approvals_approval a, runs WHERE a.run_id = %(run)s
)
INSERT INTO approvals_grant SELECT (jsonb_populate_record(g, jsonb_build_object('approval_id', runs.id))).*
FROM approvals_grant g JOIN approvals_approval a ON a.id = g.approval_id, runs WHERE a.run_id = %(run)s
"""
READ = """
SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)) FROM pg_statio_user_tables
"""


def copy(run: Run) -> None:
    """Many runs like this one, each with an approval and a grant, without decisions and events: no trigger runs."""
    with engine_connection().transaction() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(COPY, {"run": run.pk, "count": MANY})


def pages_read() -> int:
    engine_connection().execute("SELECT pg_stat_force_next_flush()")
    row = engine_connection().execute(READ).fetchone()
    assert row is not None
    return int(row[0])


def pages_for(act: Callable[[], Any]) -> int:
    before = pages_read()
    act()
    return pages_read() - before


@pytest.fixture
def deceived(driver: Driver, agent: Agent) -> list[Run]:
    """A database whose statistics are of a quiet moment. Three runs that a worker has, each with an open question; like
    each of them there are many, and many that are queued, and many whose grants are ready."""
    over = driver.start("test/gate")
    driver.go_on(over)
    driver.decide(driver.pending(over)["pay"])
    assert driver.go_on(over).status == "completed"
    copy(over)
    engine_connection().execute("ANALYZE")

    copy(start_run(agent=agent, workflow="test/steps", input=None))
    granted = driver.start("test/gate")
    driver.go_on(granted)
    driver.decide(driver.pending(granted)["pay"])
    copy(granted)
    runs = []
    for _ in range(3):
        run = start_run(agent=agent, workflow="test/steps", input=None)
        _claim(engine_connection(), CLAIM_ONE, worker="mine", run=run.id)
        open_on(run, ask())
        runs.append(run)
    copy(runs[0])
    return runs


def own(run: Run) -> Ownership:
    head = RunHead.objects.get(run=run)
    return Ownership(
        connection=engine_connection(), run_id=run.pk, epoch=head.epoch, head_seq=head.head_seq, build="test"
    )


def test_rows_are_looked_up_by_their_keys(deceived: list[Run], agent: Agent) -> None:
    least: dict[str, int] = {}
    for run in deceived:
        for name, act in acts(run, agent).items():
            least[name] = min(pages_for(act), least.get(name, MANY))
    assert {name: pages for name, pages in least.items() if not 0 < pages < FEW} == {}
    assert not RunHead.objects.filter(run__in=deceived).exclude(status="completed").exists()


def acts(run: Run, agent: Agent) -> dict[str, Callable[[], Any]]:
    """One after the other: what a run meets from its claim to its end."""
    mine, approval = own(run), Approval.objects.get(run=run)

    def claim_oldest() -> None:
        assert _claim(engine_connection(), CLAIM_OLDEST, worker="mine")

    def claim_one() -> None:
        other = start_run(agent=agent, workflow="test/steps", input=None)
        assert _claim(engine_connection(), CLAIM_ONE, worker="mine", run=other.id)

    def save() -> None:
        mine.save_checkpoint(checkpoint(mine), turn=1, phase="act", schema=1, left_phase="start")
        mine.anchor()

    def decide() -> None:
        with mine.held() as cursor:
            conclude(cursor, approval_id=approval.pk, outcome=ApprovalStatus.APPROVED, actor="system")

    def use() -> None:
        with mine.held() as cursor:
            spend(cursor, approval_id=approval.pk, action=approval.action, spent_key="key")

    return {
        "claim the oldest": claim_oldest,
        "claim one": claim_one,
        "save a checkpoint": save,
        "decide": decide,
        "spend": use,
        "ring no more": lambda: engine_connection().execute(UNRUNG, ([run.pk],)),
        "end": lambda: finish(mine, Ending.completed(b"\xc0")),
    }
