"""A randomised soak: many runs, several workers at once, interrupted at random points. Seeded and bounded."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from runs.engine.failpoints import NAMES
from runs.models import Agent, Run, RunHead
from runs.services.starting import start_run
from runs.services.sweeping import sweep
from tests.crash import flows
from tests.crash.harness import Forks, Receiver, answer_as_a_person_would, check

SEED = int(os.environ.get("FERMATA_SOAK_SEED", "7"))
RUNS = int(os.environ.get("FERMATA_SOAK_RUNS", "24"))
WORKERS = 3
ROUNDS = 60
UNFINISHED = ("queued", "running", "suspended")


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("failpoints")
def test_workers_that_die_at_random_lose_nothing_and_repeat_nothing(
    agent: Agent,
    reviewer: User,
    receiver: Receiver,
    hasty: Forks,
    move_clock: Callable[[timedelta], None],
    record_property: Callable[[str, object], None],
) -> None:
    rng = random.Random(SEED)
    kinds = [rng.choice(flows.KINDS) for _ in range(RUNS)]
    runs = [(start_run(agent=agent, workflow=f"crash/{kind}", input=None), kind) for kind in kinds]
    became: Counter[str] = Counter()
    begun = time.monotonic()
    for number in range(ROUNDS):
        left = [run for run, _ in runs if RunHead.objects.get(run=run).status in UNFINISHED]
        if not left:
            break
        calm = number > ROUNDS // 2  # the second half lets everything come to an end
        workers = [
            hasty.fork(run.id, "-" if calm else f"{rng.choice(NAMES)}:{rng.choice(('kill', 'cut', 'lose'))}")
            for run in rng.choices(left, k=WORKERS)  # also twice the same run
        ]
        became.update(hasty.wait(worker) for worker in workers)
        if rng.random() < 0.5:
            move_clock(timedelta(seconds=rng.choice((1, 4, 15))))
        sweep()
        for run in rng.sample(left, k=min(3, len(left))):
            answer_as_a_person_would(run, reviewer, receiver)
    finish_calmly(runs, hasty, reviewer, receiver, move_clock)
    for run, kind in runs:
        check(run, kind, receiver)
    took = time.monotonic() - begun
    record_property("soak", f"seed {SEED}, {RUNS} runs, {became.total()} workers, {dict(became)}, {took:.0f} s")


def finish_calmly(
    runs: list[tuple[Run, str]],
    forks: Forks,
    reviewer: User,
    receiver: Receiver,
    move_clock: Callable[[timedelta], None],
) -> None:
    """Let what is left come to its end, undisturbed."""
    for _ in range(12):
        left = [run for run, _ in runs if RunHead.objects.get(run=run).status in UNFINISHED]
        if not left:
            return
        move_clock(timedelta(seconds=15))
        sweep()
        for run in left:
            answer_as_a_person_would(run, reviewer, receiver)
            forks.wait(forks.fork(run.id))
