"""The same against workers that go on while a checkpoint is under way, until something depends on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User

from runs.models import Agent
from runs.services.starting import start_run
from tests.crash import flows  # noqa: F401 - registers the workflows
from tests.crash.harness import Forks, Receiver, check, go_on_to_the_end, interrupted

BEFORE = ("checkpoint.before", "checkpoint.after", "intent.before", "call.before", "outcome.after", "gate.before")
AFTER = ("checkpoint.before", "checkpoint.after", "finish.before")
INTERRUPTED = (("keyed", "kill"), ("once", "cut"), ("once", "lose"))


def cases() -> Iterator[Any]:
    for stage, names in (("before", BEFORE), ("after", AFTER)):
        for name, (kind, action) in product(names, INTERRUPTED):
            yield pytest.param(stage, name, kind, action, id=f"{stage}-{name}-{kind}-{action}")


@pytest.fixture(scope="module")
def forks(receiver: Receiver, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Workers in slices of several phases."""
    log = tmp_path_factory.mktemp("forks") / "workers.log"
    forks = Forks(receiver, log, slice_seconds=60)
    yield forks
    forks.close()


@pytest.mark.parametrize(("stage", "name", "kind", "action"), list(cases()))
def test_nothing_is_done_twice_while_a_checkpoint_is_under_way(
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
    run = start_run(agent=agent, workflow=f"crash/{kind}", input=None)
    interrupted(run, stage=stage, point=f"{name}:{action}", forks=forks, reviewer=reviewer, receiver=receiver)
    go_on_to_the_end(run, forks=forks, reviewer=reviewer, receiver=receiver, move_clock=move_clock)
    check(run, kind, receiver)
