"""A whole Fermata, as `make up` starts it, spoken to from outside only."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from fermata.embedded import valkey
from fermata.embedded.instance import CHECKOUT, Instance
from fermata.embedded.leftovers import standing_in
from fermata.embedded.postgres import data_folder
from tests.launcher.running import Running, environment
from tests.support.waiting import until

PASSWORD = "correct horse battery"
MORE_PEOPLE = """
from runs.models import Team
from runs.services.people import create_person
for name in {names!r}:
    create_person(username=name, password={password!r}, team=Team.objects.get(name="Default"))
"""


def basic(username: str) -> str:
    return "Basic " + base64.b64encode(f"{username}:{PASSWORD}".encode()).decode()


class Stack:
    """A running instance with an agent and a reviewer."""

    def __init__(self, instance: Instance, **variables: str) -> None:
        self.instance = instance
        self._variables = variables
        self.running = Running(instance, whole=True, **variables).ready(90)
        self.orders: list[str] = []
        self._key = json.loads(self.manage("create_agent", "outage-agent", "--json"))["key"]
        self.manage("create_person", "outage-reviewer", "--password", PASSWORD)

    def make_reviewers(self, count: int) -> list[str]:
        """So many more people of the team; their names."""
        names = [f"reviewer-{number}" for number in range(count)]
        self.manage("shell", "-c", MORE_PEOPLE.format(names=names, password=PASSWORD))
        return names

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.running.port}"

    def manage(self, *arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT,
            env=environment(self.instance, PORT=str(self.running.port), **self._variables),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout

    def call(self, path: str, body: Any = None, *, person: str | None = None) -> tuple[int, Any]:
        """(status, answer) to the agent, or to the person of this name. A 503 is an answer; a 500 fails the test."""
        request = Request(
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": basic(person) if person else f"Bearer {self._key}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urlopen(request, timeout=60) as response:
                return response.status, json.load(response)
        except HTTPError as error:
            status, answer = error.code, error.read().decode()
        assert status != 500, answer
        assert "Traceback" not in answer
        return status, answer

    def start_refunds(self, count: int) -> list[str]:
        """Start so many runs; returns their ids once all of them wait for a decision."""
        runs = []
        for number in range(len(self.orders), len(self.orders) + count):
            order = f"order-{number}"
            status, run = self.call(
                "/api/v1/runs", {"workflow": "refund-agent", "input": {"order_id": order, "amount": "1.00"}}
            )
            assert status == 201, run
            runs.append(run["id"])
            self.orders.append(order)
        until(lambda: len(self.pending(runs)) == count, what=f"{count} approvals", seconds=60)
        return runs

    def pending(self, runs: list[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        path: str | None = "/api/v1/approvals?status=pending"
        while path:
            status, page = self.call(path)
            if status != 200:
                return []
            found += [approval for approval in page["results"] if approval["run"] in runs]
            path = page["next"] and page["next"].removeprefix(self.url)
        return found

    def approve(self, approval: dict[str, Any], person: str = "outage-reviewer") -> float:
        """Vote until it is accepted: a person whose page says 503 tries again. Returns how long that one took."""

        def vote() -> float:
            begun = time.monotonic()
            status, answer = self.call(
                f"/api/v1/approvals/{approval['id']}/votes",
                {"type": "approve", "review": approval["review"]},
                person=person,
            )
            took = time.monotonic() - begun
            if status == 503:
                return 0.0
            assert status in (200, 201) or "already" in str(answer), answer
            return took

        return until(vote, what="a vote is accepted", seconds=60)

    def wait_for_completion(self, runs: list[str], seconds: float = 180) -> None:
        left = list(runs)

        def done() -> bool:
            while left and self.call(f"/api/v1/runs/{left[-1]}")[1]["status"] == "completed":
                left.pop()
            return not left

        until(done, what=f"{len(runs)} runs complete", seconds=seconds)

    def refunds(self) -> list[dict[str, Any]]:
        """Every call that reached the payment provider."""
        calls: list[dict[str, Any]] = self.call("/examples/payments/refunds")[1]["results"]
        return calls

    def workers(self) -> set[int]:
        """The Celery processes' ids."""
        pids = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and self._is_worker(entry):
                pids.add(int(entry.name))
        return pids

    def _is_worker(self, entry: Path) -> bool:
        try:
            if f"FERMATA_HOME={self.instance.home}".encode() not in (entry / "environ").read_bytes():
                return False
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            return False
        return b"celery" in words and parent == self.running.process.pid

    def kill_postgres(self) -> None:
        """SIGKILL the whole server, as a machine that loses its power."""
        postmaster = int((data_folder(self.instance) / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in [postmaster, *map(int, children)]:
            os.kill(pid, signal.SIGKILL)

    def silence_valkey(self) -> None:
        """SIGSTOP: its socket accepts connections, and nothing ever answers."""
        os.kill(self._valkey(), signal.SIGSTOP)

    def wake_valkey(self) -> None:
        os.kill(self._valkey(), signal.SIGCONT)

    def _valkey(self) -> int:
        (pid,) = standing_in(valkey.data_folder(self.instance))
        return pid

    def stop(self) -> None:
        self.running.process.terminate()
        self.running.process.wait(30)


def assert_each_refunded_once(stack: Stack) -> None:
    """Every order of this instance's whole life; it may have survived other outages before."""
    orders = [call["order_id"] for call in stack.refunds() if call["first"] and call["order_id"].startswith("order-")]
    assert sorted(orders) == sorted(stack.orders)
