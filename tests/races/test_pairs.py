"""Every two events of an approval's life that can meet, in two processes.

What two at once leave is what the one after the other would have left, in one order or the other; and whoever was
first, what approvals promise holds. `tests.races.events` lists the events; the last tests here keep it complete.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

import approvals.services
from approvals.states import GRANT_TRANSITIONS, TRANSITIONS
from tests.races import acts, events
from tests.races.events import EVENTS, PAIRS
from tests.races.places import PLACES, people
from tests.races.racing import RACES, SERIAL, Ending, Racers, standing
from tests.races.stage import Stage

RULES = {"tighten", "deny"}
EXCLUDING = [
    ("pending", ("approve", "approve on the page", "edit", "reject", "respond")),
    ("ready", ("resume",)),
    ("ready", ("spend",)),
    ("in doubt", ("it happened", "it did not happen", "stop there")),
]
NO_EVENTS = {
    "deciding": "what all the others go through",
    "refuse": "changes nothing but the trail",
    "reveal": "changes nothing but the trail",
    "close_for_run": "races as the cancellation and the end of a run",
}

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600), pytest.mark.xdist_group("pairs")]


@pytest.fixture(scope="module")
def racers(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Racers]:
    with django_db_blocker.unblock():
        pair = Racers(tmp_path_factory.mktemp("racers"))
    yield pair
    pair.close()


@pytest.mark.parametrize("place", PLACES)
def test_at_once_is_as_one_after_the_other(racers, team, place, record_property):
    people(team)
    stage = Stage(place)
    pairs = [(first, second) for at, first, second in PAIRS if at == place]
    record_property("raced", len(pairs))
    wrong = []
    for first, second in pairs:
        # A policy is confirmed outside of the run's lock, so it can come in the middle of the other event: what then
        # stands is still what one order or the other would have left.
        seen: Callable[[Ending], object] = standing if RULES & {first, second} else lambda ending: ending
        serial = [seen(racers.run(stage, first, second, SERIAL[0]))]
        for how in RACES:
            ending = seen(racers.run(stage, first, second, how))
            if ending not in serial and len(serial) == 1:
                serial.append(seen(racers.run(stage, first, second, SERIAL[1])))
            if ending not in serial:
                wrong.append((first, second, how, ending, serial))
    stage.close()
    assert not wrong


@pytest.mark.parametrize(("place", "names"), EXCLUDING)
def test_of_those_that_exclude_each_other_one_wins(racers, team, place, names):
    people(team)
    stage = Stage(place)
    for first, second in combinations_with_replacement(names, 2):
        for how in RACES:
            told = racers.run(stage, first, second, how).told
            assert sorted(error is None for error, *_ in told) == [False, True], (first, second, how, told)
    stage.close()


def test_every_move_of_the_tables_is_made_by_an_event(racers, team):
    """So that nobody adds a move to approvals/states.py without an event that races the others."""
    people(team)
    made = set()
    for place in PLACES:
        stage = Stage(place)
        for event in EVENTS:
            if place in event.places:
                made |= racers.alone(stage, event.name)
        stage.close()

    tables = {"approval": TRANSITIONS, "grant": GRANT_TRANSITIONS}
    assert made == {
        (kind, before.value, after.value)
        for kind, table in tables.items()
        for before, afters in table.items()
        for after in afters
    }


def test_every_service_that_acts_on_an_approval_races():
    """So that nobody adds a service that takes an approval without an event that races the others."""
    acting = set()
    for path in Path(approvals.services.__file__).parent.glob("*.py"):
        public = [each for each in parsed(path).body if isinstance(each, ast.FunctionDef) and each.name[0] != "_"]
        acting |= {each.name for each in public if {"deciding", "take", "conclude"} & called(each)}

    assert acting - set(NO_EVENTS) <= called(parsed(Path(acts.__file__))) | called(parsed(Path(events.__file__)))
    assert set(NO_EVENTS) <= acting


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def called(tree: ast.AST) -> set[str]:
    """The names that are used in it, of functions among others."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
