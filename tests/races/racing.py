"""Two processes, one scene: what happens one after the other, and what happens at once."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection, transaction

from approvals import errors
from approvals.models import Approval
from approvals.services.settling import settle
from approvals.services.sweeping import sweep
from approvals.states import GRANTING, OPEN, ApprovalKind, ApprovalStatus
from runs.services.locking import lock_run
from tests.races.events import BY_NAME
from tests.races.places import PEOPLE, Scene
from tests.races.stage import Stage, left_of
from tests.support.processes import ROOT, environment
from tests.support.waiting import until

ENDS = ("approval.settled", "approval.expired", "approval.cancelled", "approval.superseded")
WAITS = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s"


class Racer:
    """A process that acts when it is told to: see `tests.races.racer`."""

    def __init__(self, log: Path) -> None:
        with log.open("ab") as errors:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "tests.races.racer"],
                cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                start_new_session=True,
            )  # fmt: skip
        self._log = log
        self._acts = False
        self.backend = int(self._hear())

    def prepare(self, event: str, seat: int, scene: Scene) -> None:
        ids = [str(each) if each else None for each in (scene.approval, scene.run, scene.card)]
        self._tell(json.dumps({"event": event, "seat": seat, "scene": ids}))
        assert self._hear() == "ready"

    def go(self) -> None:
        self._tell("go")

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._hear())
        return found

    def waits_or_is_done(self) -> bool:
        """Whether it waits for a lock of the database, or has nothing more to do."""
        with connection.cursor() as cursor:
            cursor.execute(WAITS, (self.backend,))
            return bool(cursor.fetchone()[0]) or self._has_said()

    def close(self) -> None:
        os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.communicate()

    def _tell(self, line: str) -> None:
        assert self._popen.stdin
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()

    def _hear(self) -> str:
        assert self._popen.stdout
        line = self._popen.stdout.readline()
        assert line, self._log.read_text()
        return line.strip()

    def _has_said(self) -> bool:
        assert self._popen.stdout
        return bool(select.select([self._popen.stdout], [], [], 0)[0])


class Racers:
    """Both processes, and the ways to let them meet."""

    def __init__(self, folder: Path) -> None:
        self.pair = (Racer(folder / "racer-0.log"), Racer(folder / "racer-1.log"))

    def close(self) -> None:
        for racer in self.pair:
            racer.close()

    def run(self, stage: Stage, first: str, second: str, how: str) -> Ending:
        """Let `first` and `second` meet, and say how it ended."""
        scene = stage.reset()
        for seat, event in enumerate((first, second)):
            self.pair[seat].prepare(event, seat, scene)
        results = HOW[how](self.pair, scene)
        if LOOKED_AT_LATER & {first, second}:
            look_again(scene)
        left = left_of(scene, stage.since)
        check((first, second), results, stage.before, left)
        facts = ("kind", "by", "outcome", "verdict", "holder", "status", "why")
        told = [(each["error"], *(each.get("facts", {}).get(fact) for fact in facts)) for each in results]
        return Ending(told, [_comparable(number, approval) for number, approval in enumerate(left)])

    def alone(self, stage: Stage, event: str) -> set[tuple[str, str, str]]:
        """One event without another: how the approvals and grants that were there moved, as kind, before and after."""
        scene = stage.reset()
        before = _statuses(left_of(scene, stage.since))
        self.pair[0].prepare(event, 0, scene)
        self.pair[0].go()
        self.pair[0].result()
        after = _statuses(left_of(scene, stage.since))
        return {(key[1], status, after[key]) for key, status in before.items() if status != after[key]}


LOOKED_AT_LATER = {"settle", "deadline", "grant expiry", "tighten", "deny"}


@dataclass(frozen=True)
class Ending:
    """What each was told, in the order of the events, and what is left, without ids and times."""

    told: list[tuple[Any, ...]]
    left: list[dict[str, Any]]


def _one_after_the_other(pair: tuple[Racer, ...], *order: int) -> list[dict[str, Any]]:
    results = {}
    for seat in order:
        pair[seat].go()
        results[seat] = pair[seat].result()
    return [results[0], results[1]]


def _at_once(pair: tuple[Racer, ...], scene: Scene) -> list[dict[str, Any]]:
    for racer in pair:
        racer.go()
    return [racer.result() for racer in pair]


def _behind_a_lock(pair: tuple[Racer, ...], scene: Scene) -> list[dict[str, Any]]:
    """Both have read all that they read before they hold the run, when the first of them gets it."""
    with transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, scene.run)
        for racer in pair:
            racer.go()
            until(racer.waits_or_is_done, what="a racer that waits")
    return [racer.result() for racer in pair]


HOW = {
    "first, then second": lambda pair, scene: _one_after_the_other(pair, 0, 1),
    "second, then first": lambda pair, scene: _one_after_the_other(pair, 1, 0),
    "at once": _at_once,
    "queued at the run's lock": _behind_a_lock,
}
SERIAL = tuple(HOW)[:2]
RACES = tuple(HOW)[2:]


def look_again(scene: Scene) -> None:
    """What the sweeper found locked it finds later, and every vote looks at the policies itself."""
    sweep()
    for approval_id in Approval.objects.filter(run=scene.run, status__in=sorted(OPEN)).values_list("pk", flat=True):
        settle(approval_id=approval_id)


def check(
    names: tuple[str, str], told: list[dict[str, Any]], before: list[dict[str, Any]], left: list[dict[str, Any]]
) -> None:
    """What holds whoever was first."""
    for name, result in zip(names, told, strict=True):
        if result["error"] is not None:
            assert result["error"] in {kind.__name__ for kind in BY_NAME[name].loses}, (name, result)
            _check_told(result)
    recorded = sum(event["type"] == "attempt.refused" for approval in left for event in approval["chain"])
    assert recorded == sum(_is_recorded(name, result) for name, result in zip(names, told, strict=True)), names
    for number, approval in enumerate(left):
        _check_approval(before[number] if number < len(before) else None, approval)
    assert sum(approval["status"] in OPEN for approval in left if approval["kind"] == ApprovalKind.ACTION) <= 1
    assert sum(bool(approval["grant"]) and approval["grant"]["status"] in ("ready", "spent") for approval in left) <= 1


def _check_approval(before: dict[str, Any] | None, approval: dict[str, Any]) -> None:
    """One decision, which says what the approval says, one event of it, a grant exactly where due, and spent once."""
    chain, grant, is_open = approval["chain"], approval["grant"], approval["status"] in OPEN
    assert all(event["linked"] for event in chain), chain
    ended = not is_open and (before is None or before["status"] in OPEN)
    assert sum(event["type"] in ENDS for event in chain) == ended, chain
    assert (approval["decided"] is None) == is_open
    assert is_open or approval["decided"]["outcome"] == approval["status"]
    assert (grant is not None) == (approval["status"] in GRANTING and approval["kind"] == ApprovalKind.ACTION)
    was_spent = before is not None and before["grant"] is not None and before["grant"]["spent"]
    spent_now = grant is not None and grant["spent"] and not was_spent
    assert sum(event["type"] == "grant.spent" for event in chain) == spent_now, chain


def _comparable(number: int, approval: dict[str, Any]) -> dict[str, Any]:
    """Events as they were counted: some come in either order. How many a question needs is found before it is opened:
    what was rejected in that moment may not ask for a second person yet."""
    counted = {**approval, "chain": Counter(event["type"] for event in approval["chain"])}
    return counted if number == 0 else {**counted, "needed": None}


def standing(ending: Ending) -> list[tuple[str, str | None]]:
    """How each approval and its grant stand."""
    return [(approval["status"], approval["grant"] and approval["grant"]["status"]) for approval in ending.left]


def _statuses(left: list[dict[str, Any]]) -> dict[tuple[int, str], str]:
    found = {(n, "approval"): approval["status"] for n, approval in enumerate(left)}
    return found | {(n, "grant"): each["grant"]["status"] for n, each in enumerate(left) if each["grant"]}


def _is_recorded(name: str, result: dict[str, Any]) -> bool:
    kind = getattr(errors, result["error"] or "", Exception)
    return issubclass(kind, errors.Refused) and name not in ("succeed", "fail")  # the engine's own transaction


def _check_told(result: dict[str, Any]) -> None:
    """Who is told that somebody else was first is told who, what and when."""
    facts = result["facts"]
    match result["error"]:
        case "AlreadyDecided":
            assert facts["outcome"] in ApprovalStatus.values
            assert facts["outcome"] not in OPEN
            assert facts["at"]
            assert facts["by"] in (*PEOPLE, None)
            assert facts["by"] or facts["outcome"] not in ("edited", "responded")
            assert facts["successor"] or facts["outcome"] != "superseded"
        case "ClaimedByOther":
            assert facts["holder"] in PEOPLE
            assert facts["until"]
        case "GrantProblem" if facts["kind"] == "already_consumed":
            assert facts["facts"]["spent_at"]
        case "StaleReview":
            assert facts["review"]
