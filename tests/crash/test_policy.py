"""The same against workflows that skip boundaries: no effect is repeated, no record is left without a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User

from checkpoints.models import Checkpoint
from runs.bodies import opened, result_place
from runs.engine.failpoints import NAMES
from runs.models import Agent, Gate, Run, Step
from runs.services.starting import start_run
from tests.crash.harness import Forks, Receiver, check, go_on_to_the_end, interrupted
from tests.crash.test_failpoints import AFTER_THE_DECISION, BEFORE_THE_GATE

INTERRUPTED = (("keyed", "kill"), ("once", "kill"), ("once", "cut"), ("once", "lose"))


def cases() -> Iterator[Any]:
    for stage, families in (("before", BEFORE_THE_GATE), ("after", AFTER_THE_DECISION)):
        for name, (kind, action) in product(NAMES, INTERRUPTED):
            family = name.partition(".")[0]
            if family in families and family != "release":  # nobody gives a run back within so long a slice
                yield pytest.param(stage, name, kind, action, id=f"{stage}-{name}-{kind}-{action}")


@pytest.fixture(scope="module")
def forks(receiver: Receiver, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Workers whose slices are long enough for phases to follow each other."""
    forks = Forks(receiver, tmp_path_factory.mktemp("forks") / "workers.log", slice_seconds=60)
    yield forks
    forks.close()


@pytest.mark.parametrize(("stage", "name", "kind", "action"), list(cases()))
def test_nothing_is_done_twice_although_boundaries_are_skipped(
    stage: str,
    name: str,
    kind: str,
    action: str,
    agent: Agent,
    reviewer: User,
    receiver: Receiver,
    forks: Forks,
    move_clock: Callable[[timedelta], None],
) -> None:
    run = start_run(agent=agent, workflow=f"lazy/{kind}", input=None)
    interrupted(run, stage=stage, point=f"{name}:{action}", forks=forks, reviewer=reviewer, receiver=receiver)
    go_on_to_the_end(run, forks=forks, reviewer=reviewer, receiver=receiver, move_clock=move_clock)
    check(run, kind, receiver)
    check_turns(run)


def check_turns(run: Run) -> None:
    """Every step and gate is in a turn that begins at a checkpoint; and boundaries were skipped indeed."""
    run.refresh_from_db()
    assert opened(run.result or b"", result_place(run.pk), what="result") == {"n": 12, "history": 1}
    saved = set(Checkpoint.objects.filter(run_id=run.pk).values_list("turn", flat=True))
    recorded = {*Step.objects.filter(run=run).values_list("turn", flat=True)}
    recorded |= {*Gate.objects.filter(run=run).values_list("turn", flat=True)}
    assert recorded <= saved
    assert len(saved) < run.head.turn
