"""The table of transitions in Python and the one in the database are the same."""

from itertools import product
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from runs.models import Agent, Run, RunHead
from runs.states import TRANSITIONS, RunStatus, SuspendReason

pytestmark = pytest.mark.django_db


def put(agent: Agent, status: RunStatus) -> RunHead:
    run = Run.objects.create(id=uuid4(), team=agent.team, agent=agent, kind="hosted", title="t", input=b"")
    return RunHead.objects.create(run=run, epoch=1, **columns(status))


def columns(status: RunStatus) -> dict[str, object]:
    """The fields that the constraints ask for in this state."""
    return {
        "status": status,
        "lease": "2026-01-01T00:00:00Z" if status == RunStatus.RUNNING else None,
        "reason": SuspendReason.APPROVAL if status == RunStatus.SUSPENDED else "",
        "detail": "because" if status == RunStatus.BLOCKED else "",
    }


@pytest.mark.parametrize(("before", "after"), [p for p in product(RunStatus, RunStatus) if p[0] != p[1]])
def test_the_database_allows_exactly_the_transitions_of_the_table(
    agent: Agent, before: RunStatus, after: RunStatus
) -> None:
    head = put(agent, before)
    change = RunHead.objects.filter(pk=head.pk)
    if after in TRANSITIONS[before]:
        assert change.update(**columns(after)) == 1
    else:
        with pytest.raises(IntegrityError, match="cannot go from"), transaction.atomic():
            change.update(**columns(after))


@pytest.mark.parametrize(
    ("status", "wrong"),
    [
        (RunStatus.RUNNING, {"lease": None}),
        (RunStatus.QUEUED, {"lease": "2026-01-01T00:00:00Z"}),
        (RunStatus.SUSPENDED, {"reason": ""}),
        (RunStatus.QUEUED, {"reason": "approval"}),
        (RunStatus.BLOCKED, {"detail": ""}),
    ],
)
def test_the_database_refuses_a_state_without_what_belongs_to_it(
    agent: Agent, status: RunStatus, wrong: dict[str, object]
) -> None:
    head = put(agent, status)
    with pytest.raises(IntegrityError), transaction.atomic():
        RunHead.objects.filter(pk=head.pk).update(**wrong)
