"""Two workers that look for work at once."""

from __future__ import annotations

from runs.engine.connection import connect
from runs.engine.executor import execute_oldest
from runs.models import Agent, RunHead
from runs.services.starting import start_run
from tests.engine import flows  # noqa: F401 - registers the workflows

LOCK = "SELECT 1 FROM runs_head WHERE run_id = %s FOR NO KEY UPDATE"


def test_a_worker_passes_over_the_run_that_another_one_is_claiming(transactional_db: None, agent: Agent) -> None:
    first, second, third = (start_run(agent=agent, workflow="test/steps", input=None) for _ in range(3))
    with connect() as other, other.transaction():
        other.execute(LOCK, (first.id,))
        assert execute_oldest(worker="mine")
    statuses = dict(RunHead.objects.values_list("run_id", "status"))
    assert statuses[first.id] == "queued"
    assert statuses[second.id] != "queued"
    assert statuses[third.id] == "queued"


def test_the_oldest_first_and_then_nothing(transactional_db: None, agent: Agent) -> None:
    start_run(agent=agent, workflow="test/steps", input=None)
    assert execute_oldest(worker="mine")
    RunHead.objects.filter(status="queued").update(wake_at="2100-01-01T00:00:00Z")
    assert not execute_oldest(worker="mine")
