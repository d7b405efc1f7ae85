"""What the crash tests share: the receiver, the forked workers, a truthful person, and what must hold at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from urllib.request import urlopen
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection

from approvals.models import Approval
from approvals.services.doubt import resolve_in_doubt
from approvals.services.voting import vote
from checkpoints.models import Checkpoint
from runs.models import Run, RunHead, Step
from runs.services.sweeping import sweep
from tests.support.processes import ROOT, environment

HASTY_SECONDS = 2
ACTIONS = {"kill": f"signal {signal.SIGKILL}", "stop": "stopped", "cut": "struck", "lose": "struck"}


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

    def performed(self, what: str) -> int:
        """How often it did `what`: it does a call with a key once, as payment providers do, and any other each time."""
        keys = [call["key"] for call in self.calls(what)]
        return len({key for key in keys if key}) + keys.count("")


class Forks:
    """Workers that are forked on request; see `tests.crash.forks`."""

    def __init__(
        self, receiver: Receiver, log: Path, *, slice_seconds: int = 0, lease_seconds: int = 10, **extra: str
    ) -> None:
        env = environment(
            FERMATA_FAILPOINTS="1",
            FERMATA_LEASE_SECONDS=str(lease_seconds),
            FERMATA_SLICE_SECONDS=str(slice_seconds),
            RECEIVER=receiver.url,
            **extra,
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


def interrupted(run: Run, *, stage: str, point: str, forks: Forks, reviewer: User, receiver: Receiver) -> int:
    """Let a worker take the run to `point`, `name:action`, before its gate or `after` the decision; the worker's id."""
    if stage == "after":
        assert forks.wait(forks.fork(run.id)) == "done"
        answer_as_a_person_would(run, reviewer, receiver)
    doomed = forks.fork(run.id, point)
    assert forks.wait(doomed) == ACTIONS[point.partition(":")[2]]
    return doomed


def go_on_to_the_end(
    run: Run, *, forks: Forks, reviewer: User, receiver: Receiver, move_clock: Callable[[timedelta], None]
) -> None:
    """Let leases and deadlines run out, and workers and a person do what is left to do."""
    for _ in range(12):
        if RunHead.objects.get(run=run).status in ("completed", "failed"):
            break
        move_clock(timedelta(seconds=15))
        sweep()
        answer_as_a_person_would(run, reviewer, receiver)
        assert forks.wait(forks.fork(run.id)) == "done"


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
