"""Every named point, every kind of effect, every way to be interrupted, against an independent receiver's log.

A worker is interrupted at the point; another one goes on; a person answers truthfully what only a person can answer.
Whatever happened, the run completes, and no `keyed`, `probe` or `once` effect happened twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any
from urllib.request import urlopen
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection

from approvals.models import Approval
from approvals.services.doubt import resolve_in_doubt
from approvals.services.voting import vote
from checkpoints.models import Checkpoint
from runs.engine.failpoints import NAMES
from runs.models import Agent, Run, RunHead, Step
from runs.services.starting import start_run
from runs.services.sweeping import sweep
from tests.crash import flows
from tests.support.processes import ROOT, environment

ACTIONS = {"kill": f"signal {signal.SIGKILL}", "stop": "stopped", "cut": "struck", "lose": "struck"}
BEFORE_THE_GATE = ("claim", "load", "intent", "call", "outcome", "checkpoint", "gate", "release")
AFTER_THE_DECISION = ("claim", "load", "deliver", "intent", "call", "outcome", "checkpoint", "finish", "release")
EFFECTS_ONLY = {"intent", "call", "outcome"}
TABLE: Counter[tuple[str, str, str]] = Counter()


def cases() -> Iterator[Any]:
    for stage, families in (("before", BEFORE_THE_GATE), ("after", AFTER_THE_DECISION)):
        for name, kind, action in product(NAMES, flows.KINDS, ACTIONS):
            family = name.partition(".")[0]
            if family not in families or (kind == "read" and family in EFFECTS_ONLY):
                continue
            yield pytest.param(stage, name, kind, action, id=f"{stage}-{name}-{kind}-{action}")


class Receiver:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/crash/receiver.py")], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()

    def calls(self, what: str) -> list[dict[str, str]]:
        with urlopen(f"{self.url}/calls", timeout=10) as response:
            return [call for call in json.load(response) if call["what"] == what]


class Forks:
    """Workers that are forked on request; see `tests.crash.forks`."""

    def __init__(self, receiver: Receiver, log: Path) -> None:
        env = environment(
            FERMATA_FAILPOINTS="1", FERMATA_LEASE_SECONDS="1", FERMATA_SLICE_SECONDS="0", RECEIVER=receiver.url
        )
        with log.open("ab") as errors:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.forks"],
                cwd=ROOT,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        assert self._popen.stdout
        assert self._popen.stdout.readline() == "ready\n", log.read_text()

    def _ask(self, line: str) -> str:
        assert self._popen.stdin
        assert self._popen.stdout
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()
        return self._popen.stdout.readline().strip()

    def fork(self, run_id: UUID, failpoint: str = "-") -> int:
        return int(self._ask(f"{run_id} {failpoint}"))

    def wait(self, pid: int) -> str:
        return self._ask(f"wait {pid}")

    def close(self) -> None:
        os.killpg(self._popen.pid, signal.SIGKILL)  # its children too, stopped ones among them
        end(self._popen)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    end(receiver.process)


@pytest.fixture(scope="module")
def forks(receiver: Receiver, django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    forks = Forks(receiver, tmp_path_factory.mktemp("forks") / "workers.log")
    yield forks
    forks.close()


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
    move_clock: Callable[[timedelta], None],
) -> None:
    run = start_run(agent=agent, workflow=f"crash/{kind}", input=None)
    if stage == "after":
        assert forks.wait(forks.fork(run.id)) == "done"
        answer_as_a_person_would(run, reviewer, receiver)
    doomed = forks.fork(run.id, f"{name}:{action}")
    assert forks.wait(doomed) == ACTIONS[action]
    TABLE[name, kind, action] += 1
    for _ in range(12):
        if RunHead.objects.get(run=run).status in ("completed", "failed"):
            break
        move_clock(timedelta(seconds=15))  # the lease, and the call's deadline, are over
        sweep()
        answer_as_a_person_would(run, reviewer, receiver)
        assert forks.wait(forks.fork(run.id)) == "done"
    if action == "stop":
        os.kill(doomed, signal.SIGCONT)
        assert forks.wait(doomed) in ("done", "struck")
    check(run, kind, receiver)


def answer_as_a_person_would(run: Run, reviewer: User, receiver: Receiver) -> None:
    """Approve what is asked; about a call in doubt, say what the receiver's log says."""
    for approval in Approval.objects.filter(run=run, status="pending"):
        if approval.kind == "in_doubt":
            calls = receiver.calls(json.loads(approval.args)["what"])
            resolve_in_doubt(
                approval_id=approval.id,
                person=reviewer,
                answer="happened" if calls else "not_happened",
                outcome={"receipt": "from the log"} if calls else None,
                review=approval.review,
            )
        else:
            vote(
                approval_id=approval.id,
                voter=reviewer,
                verdict="approve",
                review=approval.review,
                args=None,
                message="",
                hold=timedelta(0),
            )


def check(run: Run, kind: str, receiver: Receiver) -> None:
    head = RunHead.objects.get(run=run)
    run.refresh_from_db()
    assert head.status == "completed", f"{head.status} {head.reason} {head.detail}: {run.error}\n{run.traceback}"
    for what in ("act", "gated"):
        calls = receiver.calls(f"{run.id}-{what}")
        if kind == "read":
            assert calls
        elif kind == "keyed":
            assert len({call["key"] for call in calls}) == 1, calls
        else:
            assert len(calls) == 1, calls
    checkpoints = list(Checkpoint.objects.filter(run_id=run.id).order_by("seq").values_list("seq", "epoch"))
    assert [seq for seq, _ in checkpoints] == list(range(head.head_seq + 1))
    assert [epoch for _, epoch in checkpoints] == sorted(epoch for _, epoch in checkpoints)
    assert not Step.objects.filter(run=run).exclude(state="done").exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(count) FROM checkpoints_historychunk WHERE run_id = %s", [run.id])
        assert cursor.fetchone()[0] == 1  # the history was appended once


def test_zz_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Print how often each point was struck."""
    with capsys.disabled():
        print(f"\n{'failpoint':<20}" + "".join(f"{kind:>8}" for kind in flows.KINDS))
        for name in NAMES:
            counts = [sum(TABLE[name, kind, action] for action in ACTIONS) for kind in flows.KINDS]
            print(f"{name:<20}" + "".join(f"{count:>8}" for count in counts))
        print(f"cases: {TABLE.total()}")
