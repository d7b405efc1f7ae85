"""Every crash that a workflow can meet, and what it changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fermata.certify.database import throw_away_database
from fermata.certify.processes import Workers
from fermata.certify.rehearsal import Performance, Place, Rehearsal, Strike
from fermata.certify.standins import Samples
from runs.engine.failpoints import NAMES
from runs.models import Agent, Team
from runs.states import RunStatus

MAX_PASSAGES = 2  # of one failpoint within one phase: after that they repeat each other
DAYS_AHEAD = 400  # another day, another month, another year


@dataclass(frozen=True)
class Finding:
    """What a crash made of a step, or of a phase. `bad`: it must not."""

    place: Place
    what: str
    bad: bool


@dataclass(frozen=True)
class Certificate:
    """What was tried on one workflow: how many crashes, and each finding with the failpoints that it was found at."""

    workflow: str
    crashes: int
    findings: dict[Finding, tuple[str, ...]]

    @property
    def passed(self) -> bool:
        return self.crashes > 0 and not any(finding.bad for finding in self.findings)


def certify(*, module: str, inputs: Mapping[str, Any], samples: Samples) -> Iterator[Certificate]:
    """Try the workflows named in `inputs`, all of `module`, each with its input. Raises WorkerFailed, DatabaseError."""
    with (
        throw_away_database() as url,
        Workers(module=module, database=url, hash_seed=1, days_ahead=0) as first,
        Workers(module=module, database=url, hash_seed=2, days_ahead=DAYS_AHEAD) as other,
    ):
        agent = Agent.objects.create(team=Team.objects.get(name="Default"), name="certify")
        for name, given in inputs.items():
            rehearsal = Rehearsal(agent=agent, workflow=name, input=given, samples=samples, first=first, other=other)
            yield try_everything(name, rehearsal)


def try_everything(workflow: str, rehearsal: Rehearsal) -> Certificate:
    """Run it undisturbed; then again and again, killed at each passage of each failpoint."""
    expected = rehearsal.perform()
    if expected.status != RunStatus.COMPLETED:
        place = Place(expected.phase)
        found = Finding(place, f"does not complete even undisturbed: {expected.detail or expected.status}", bad=True)
        return Certificate(workflow, 0, {found: ()})
    crashes = 0
    where: dict[Finding, dict[str, None]] = defaultdict(dict)
    for strike in strikes(expected):
        crashes += 1
        for finding in judge(rehearsal.perform(strike), expected):
            where[finding][strike.failpoint] = None
    return Certificate(workflow, crashes, {finding: tuple(names) for finding, names in where.items()})


def strikes(undisturbed: Performance) -> Iterator[Strike]:
    """Every place where a worker of this run can die."""
    for number, passed in enumerate(undisturbed.slices):
        for name in NAMES:
            for nth in range(1, min((passed or {}).get(name, 0), MAX_PASSAGES) + 1):
                yield Strike(number, name, nth)


def judge(found: Performance, expected: Performance) -> Iterator[Finding]:
    """What differs from the undisturbed run, and what is worth knowing although it may be so."""
    if found.status == RunStatus.BLOCKED:
        yield Finding(Place(found.phase), f"diverges: {found.detail}", bad=True)
    elif found.status != RunStatus.COMPLETED:
        yield Finding(Place(found.phase), f"does not complete: {found.detail or found.status}", bad=True)
    else:
        for (_, place), _count in sorted((expected.effects - found.effects).items()):
            yield Finding(place, "is lost", bad=True)
    for (turn, place), _count in sorted((found.effects - expected.effects).items()):
        known = (turn, place) in expected.effects
        yield Finding(place, "is done twice" if known else "diverges: the undisturbed run does not do this", bad=True)
    for place in sorted(found.resent):
        yield Finding(place, "is sent again under the same key", bad=False)
    for place in sorted(found.asked):
        yield Finding(place, "is in doubt: a person is asked", bad=False)
