"""What keys are for, side by side: the same crash, the same recovery, without keys and with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from runs.models import Agent, RunHead
from runs.services.starting import start_run
from runs.services.sweeping import sweep
from tests.crash import flows  # noqa: F401 - registers the workflows
from tests.crash.harness import Forks, Receiver

RUNS = 12


@pytest.mark.xdist_group("failpoints")
@pytest.mark.parametrize(
    ("workflow", "failpoint", "duplicated"),
    [
        ("crash/unkeyed", "finish.before", RUNS),  # declared repeatable: its outcome goes with the end of the phase
        ("crash/keyed", "outcome.before", 0),
    ],
)
def test_all_of_them_are_duplicated_without_keys_and_none_with(
    agent: Agent,
    receiver: Receiver,
    forks: Forks,
    move_clock: Callable[[timedelta], None],
    workflow: str,
    failpoint: str,
    duplicated: int,
) -> None:
    """agent-framework#3938: a payment is called, its worker dies before that is recorded, another worker goes on."""
    runs = [start_run(agent=agent, workflow=workflow, input=None) for _ in range(RUNS)]
    for run in runs:
        assert forks.wait(forks.fork(run.id, f"{failpoint}:kill")) == "signal 9"
    move_clock(timedelta(seconds=15))
    sweep()
    for run in runs:
        assert forks.wait(forks.fork(run.id)) == "done"
        assert RunHead.objects.get(run=run).status in ("completed", "suspended")  # keyed: at its gate, after the call

    acts = [f"{run.id}-act" for run in runs]
    assert [len(receiver.calls(act)) for act in acts] == [2] * RUNS
    assert sum(receiver.performed(act) > 1 for act in acts) == duplicated
