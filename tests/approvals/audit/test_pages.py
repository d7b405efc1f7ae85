"""The audit page's pages: the same events as a filter that reads them all, however few are looked at for each."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.audit import EventType, queries
from approvals.audit.pages import Place, page
from approvals.audit.queries import Filters
from approvals.models import Approval, AuditEvent
from approvals.models.audit import EVERYDAY
from runs.models import Agent, Run, Team
from runs.principals import Person
from tests.approvals.scenes import opened

pytestmark = pytest.mark.django_db


def leaf_through(parts: Any, filters: Filters, **fields: Any) -> list[list[AuditEvent]]:
    """All pages, one after the other."""
    pages, after = [], None
    while True:
        found = page(parts, filters, after=after, **fields)
        pages.append(found.events)
        assert found.end or not found.looked_back_to
        if found.end is None:
            return pages
        after = Place.parse(str(found.end))


@pytest.fixture
def story(write: Callable[..., str], person: Callable[..., User], agent: Agent) -> dict[str, Any]:
    """Events of each kind, among others that are like them."""
    ada, approval = person("ada"), opened(agent)
    for _ in range(2):
        write(chain=f"run:{approval.run_id}", type="run.started", body={"message": "Überweisung 100%"})
        write(actor=f"person:{ada.pk}", body={"message": "no"})
        opened(Agent.objects.create(team=agent.team, name=f"another {_}"), tool="wire")
        write(person_id=ada.pk, type="vote.voided")
        opened(agent, tool="Wire", args={"n": _})
    return {"ada": ada.pk, "agent": agent.pk, "approval": approval.pk, "run": approval.run_id, "team": agent.team_id}


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, 11),
        ({"person": "ada"}, 4),
        ({"agent": "agent"}, 5),
        ({"tool": "WIRE"}, 4),
        ({"tool": "wir"}, 0),
        ({"tool": "REFUND", "agent": "agent"}, 1),
        ({"type": "vote.cast"}, 2),
        ({"type": "vote.voided", "person": "ada"}, 2),
        ({"approval": "approval"}, 1),
        ({"run": "run"}, 3),
        ({"run": "run", "tool": "refund"}, 1),
        ({"text": "Überweisung"}, 2),
        ({"text": "100%", "team": "team"}, 2),
        ({"text": "Überweisung", "type": "vote.cast"}, 0),
    ],
)
def test_a_filter_finds_on_pages_what_it_finds_in_all(
    story: dict[str, Any], monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any], found: int, few: int
) -> None:
    """Also when nobody is so rare that their events are looked up one by one, and three are looked at for a page."""
    monkeypatch.setattr("approvals.audit.pages.FEW", few)
    monkeypatch.setattr("approvals.audit.pages.LOOKED_AT", 3)
    chosen = Filters(**{name: story.get(value, value) for name, value in filters.items()})
    events = [
        event
        for shown in leaf_through([AuditEvent.objects.all()], chosen, teams=[story["team"]], size=2)
        for event in shown
    ]

    assert len(events) == found
    assert events == list(queries.narrowed(AuditEvent.objects.order_by("-at", "-id"), chosen))


def test_times_narrow(write: Callable[..., str]) -> None:
    write()
    now = datetime.now(UTC)

    def found(**filters: datetime) -> int:
        return len(page([AuditEvent.objects.all()], Filters(**filters)).events)

    assert found(since=now + timedelta(minutes=1)) == found(until=now - timedelta(minutes=1)) == 0
    assert found(since=now - timedelta(minutes=1), until=now + timedelta(minutes=1)) == 1


def test_pages_of_several_parts_hold_every_event_once_newest_first(
    write: Callable[..., str], person: Callable[..., User], team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the team's trail and its configuration, which is in both; one has what is looked for much further back."""
    monkeypatch.setattr("approvals.audit.pages.LOOKED_AT", 2)
    other = Team.objects.create(name="Other")
    ada = person("ada", "auditor", "admin")
    ada.memberships.create(team=other, roles=["auditor"])
    for number in range(9):
        write(body={"message": "sought" if number < 3 else ""})
        write(chain=f"team:{team.pk}", type="policy.changed")
        write(team_id=other.pk, body={"message": "sought" if number % 2 else ""})
    parts = queries.overseen_by(Person(ada))

    for filters, count in ((Filters(), 27), (Filters(text="sought"), 7)):
        pages = leaf_through(parts, filters, size=4)
        seen = [event.pk for shown in pages for event in shown]
        assert seen == sorted(seen, reverse=True)
        assert len(set(seen)) == len(seen) == count


def test_a_page_that_is_not_full_says_how_far_it_looked(
    write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("approvals.audit.pages.LOOKED_AT", 3)
    write(body={"message": "sought"})
    write(5)
    third = AuditEvent.objects.order_by("-at", "-id")[2]

    first = page([AuditEvent.objects.all()], Filters(text="sought"), size=2)
    assert (first.events, first.end, first.looked_back_to) == ([], Place(third.at, third.pk), third.at)
    second = page([AuditEvent.objects.all()], Filters(text="sought"), after=first.end, size=2)
    third_page = page([AuditEvent.objects.all()], Filters(text="sought"), after=second.end, size=2)
    assert [len(second.events), len(third_page.events)] == [1, 0]
    assert (third_page.end, third_page.looked_back_to) == (None, None)


def test_a_look_reads_about_as_far_as_it_takes(write: Callable[..., str]) -> None:
    for number in range(150):
        write(body={"message": "" if number % 10 else "sought"})
    with CaptureQueriesContext(connection) as asked:
        found = page([AuditEvent.objects.all()], Filters(text="sought"), size=5)

    assert len(found.events) == 5
    read = [int(query["sql"].rpartition("LIMIT ")[2]) for query in asked if " LIMIT " in query["sql"]]
    assert read[:2] == [6, 24]  # there were two among the first 30
    assert sum(read) < 6 + 24 + 96


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def test_each_event_is_looked_up_where_it_belongs(story: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Among approvals or among runs, not in both."""
    monkeypatch.setattr("approvals.audit.pages.FEW", 0)
    with CaptureQueriesContext(connection) as asked:
        page([AuditEvent.objects.all()], Filters(agent=story["agent"]), teams=[story["team"]])
    (walk,) = [query["sql"] for query in asked if '"passes"' in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {walk}")
        ((plan,),) = cursor.fetchone()
    looked_up = [
        node["Actual Loops"]
        for node in nodes(plan["Plan"])
        # A scan of an index for a bitmap names no relation: the scan of the rows it leads to does.
        if node.get("Relation Name") in {Approval._meta.db_table, Run._meta.db_table}
    ]

    assert sum(looked_up) == AuditEvent.objects.count()


@pytest.mark.parametrize("text", ["", "x", "2026-01-01", "2026-01-01T00:00:00_1", "2026-01-01T00:00:00+00:00_-1"])
def test_a_place_that_nobody_gave_out_is_none(text: str) -> None:
    assert Place.parse(text) is None


def test_everyday_events_are_events() -> None:
    assert set(EVERYDAY) < set(EventType.values)
