from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import Approval
from approvals.services.voting import vote
from runs.bodies import opened, result_place
from runs.engine.executor import execute
from runs.models import Agent, Run, RunHead
from runs.services.starting import start_run
from tests.engine import flows
from tests.engine.deploys import deployment

__all__ = ["deployment"]


@pytest.fixture(autouse=True)
def _fresh_flows() -> None:
    flows.CALLS.clear()
    flows.SWITCH.clear()


class Driver:
    """Runs a workflow in this process, slice by slice, as a worker would."""

    def __init__(self, agent: Agent, reviewer: User) -> None:
        self._agent = agent
        self._reviewer = reviewer

    def start(self, workflow: str, input: Any = None) -> Run:
        return start_run(agent=self._agent, workflow=workflow, input=input)

    def go_on(self, run: Run) -> RunHead:
        execute(run.id, worker="test")
        return RunHead.objects.get(run=run)

    def result(self, run: Run) -> Any:
        run.refresh_from_db()
        assert run.result is not None, f"{run.error_type}: {run.error}\n{run.traceback}"
        return opened(run.result, result_place(run.pk), what="result")

    def pending(self, run: Run) -> dict[str, Approval]:
        return {a.key: a for a in Approval.objects.filter(run=run, status="pending")}

    def decide(self, approval: Approval, verdict: str = "approve", **extra: Any) -> Approval:
        return vote(
            approval_id=approval.id,
            voter=self._reviewer,
            verdict=verdict,
            review=approval.review,
            args=extra.get("args"),
            message=extra.get("message", ""),
            hold=timedelta(0),
        )


@pytest.fixture
def driver(transactional_db: None, agent: Agent, reviewer: User) -> Driver:
    return Driver(agent, reviewer)
