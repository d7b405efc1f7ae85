"""Every named point, every kind of effect, every way to be interrupted, against an independent receiver's log.

A worker is interrupted at the point; another one goes on; a person answers truthfully what only a person can answer.
Whatever happened, the run completes, and no `keyed`, `probe` or `once` effect happened twice.

Public reports that are cases of it: C10, crewAI#5802 and openworker#443 (died after the effect, before its record);
langgraph#8039 and #8234 (between a step's result and the checkpoint); langgraph#8764 (before the first checkpoint);
azure-functions-durable-extension#382 and #3375 (fenced in the middle of a commit); trigger.dev#2493 and #2563 (stalled,
then went on); software-agent-sdk#2298 (one result for each call).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User

from runs.engine.effects import boot_time
from runs.engine.failpoints import NAMES
from runs.models import Agent
from runs.services.starting import start_run
from tests.crash import flows
from tests.crash.harness import ACTIONS, HASTY_SECONDS, Forks, Receiver, check, go_on_to_the_end, interrupted
from tests.support.struck import PROPERTY
from tests.support.waiting import until

BEFORE_THE_GATE = ("claim", "load", "intent", "call", "outcome", "checkpoint", "gate", "release")
AFTER_THE_DECISION = ("claim", "load", "intent", "call", "outcome", "checkpoint", "finish", "release")
EFFECTS_ONLY = {"intent", "call", "outcome"}
pytestmark = pytest.mark.xdist_group("failpoints")


def cases() -> Iterator[Any]:
    for stage, families in (("before", BEFORE_THE_GATE), ("after", AFTER_THE_DECISION)):
        for name, kind, action in product(NAMES, flows.KINDS, ACTIONS):
            family = name.partition(".")[0]
            if family not in families or (kind == "read" and family in EFFECTS_ONLY):
                continue
            yield pytest.param(stage, name, kind, action, id=f"{stage}-{name}-{kind}-{action}")


@pytest.mark.parametrize(("stage", "name", "kind", "action"), list(cases()))
def test_interrupted_anywhere_nothing_is_lost_and_nothing_is_done_twice(
    stage: str,
    name: str,
    kind: str,
    action: str,
    agent: Agent,
    reviewer: User,
    receiver: Receiver,
    forks: Forks,
    hasty: Forks,
    move_clock: Callable[[timedelta], None],
    record_property: Callable[[str, object], None],
) -> None:
    run = start_run(agent=agent, workflow=f"crash/{kind}", input=None)
    forks = hasty if action == "stop" else forks
    point = f"{name}:{action}"
    doomed = interrupted(run, stage=stage, point=point, forks=forks, reviewer=reviewer, receiver=receiver)
    struck_at = boot_time()
    record_property(PROPERTY, (name, kind, action))
    go_on_to_the_end(run, forks=forks, reviewer=reviewer, receiver=receiver, move_clock=move_clock)
    if action == "stop":
        # The database's clock was moved; the worker's own clock has to see that too much time went by for a call, too.
        until(lambda: boot_time() - struck_at > HASTY_SECONDS / 2, what="it is too late by every clock")
        os.kill(doomed, signal.SIGCONT)
        assert forks.wait(doomed) in ("done", "struck")
    check(run, kind, receiver)
