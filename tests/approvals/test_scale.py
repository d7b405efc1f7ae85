"""What the inbox, the lists, the audit page and the sweeper read does not grow with the number of cards.

The database and the requests are the benchmark's (`make bench INBOX=1`), in small. Counted are pages of tables and
indexes, which no other load changes, and not time.
"""

import gc
from datetime import timedelta

import pytest
from django.db import connection
from django.forms import model_to_dict

from approvals import canonical
from approvals.gates import require_approval
from approvals.models import Approval
from approvals.policies import Requirements
from benchmarks.inbox.database import prepare
from benchmarks.inbox.places import Place, places
from runs.authoring import RunContext
from runs.services import sweeping
from tests.approvals.scenes import ask, open_on, parked_run
from tests.engine.deploys import deployment
from tests.engine.flows import pay

__all__ = ["deployment"]

FEW, MANY = 400, 4000
TIMES, MORE = 2, 60  # so many times as many pages may be read, and so many more: a tree is a level higher

# So low that a page of each list is full, and a bounded look reaches its end, also with few cards.
BOUNDS = {
    "approvals.audit.pages.FEW": 5,
    "approvals.audit.pages.LOOKED_AT": 100,
    "approvals.presentation.card.PAST_SHOWN": 2,
    "approvals.presentation.inbox.PAGE": 5,
    "approvals.queries.queue.COUNTED": 10,
    "approvals.queries.queue.FEW": 20,
    "approvals.queries.queue.LOOKED_AT": 100,
    "approvals.queries.trouble.MOST": 10,
    "runs.services.sweeping.LOOKED_AT": 5,
    "runs.views.PAGE": 5,
}
READ = """
SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0)
           + coalesce(toast_blks_read + toast_blks_hit + tidx_blks_read + tidx_blks_hit, 0))
FROM pg_statio_user_tables
"""
# Which call it is and when it was asked; when people were told, which the services write later.
ITS_OWN = {"turn", "action", "review", "snapshot_digest", "created_at", "expires_at", "announced_at", "reminded_at"}


def asking(self, run: RunContext) -> object:
    require_approval(run, "pay", tool=pay, args={"amount": "9.50"}, title="Pay", expires_in=timedelta(hours=1))
    return run.complete()


@pytest.fixture
def bounded(monkeypatch):
    for name, bound in BOUNDS.items():
        monkeypatch.setattr(name, bound)
    # Of the benchmark's runs, whose ids grow, most shares have none: by the minute, it would be such a one or another.
    share = sweeping._share
    monkeypatch.setattr(sweeping, "_share", lambda number, shares: share(0, shares))


@pytest.fixture
def filled(transactional_db, deployment):
    """Fill the database with so many pending cards; gives its people."""
    workflow = deployment.workflow(start=asking)
    return lambda pending: prepare(pending, workflow=workflow, tell=lambda step: None)


def pages_read():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute(READ)
        return int(cursor.fetchone()[0])


def is_measured(place: Place) -> bool:
    """Every page of the inbox counts the cards of all tabs but *History*, so two tabs search and filter for all."""
    return place.group not in ("filters", "search") or place.name.startswith(("History", "Waiting on others"))


def pages_for(place: Place) -> int:
    before = pages_read()
    place.ask()
    return pages_read() - before


def collected_after(place: Place) -> int:
    """How many objects only the garbage collector frees."""
    place.ask()
    gc.collect()
    gc.disable()
    try:
        place.ask()
        return gc.collect()
    finally:
        gc.enable()


def measured(people):
    everywhere = [place for place in places(people, limit=5) if is_measured(place)]
    everywhere[0].ask()  # what a process reads once
    return {f"{place.group}: {place.name}": place for place in everywhere}


@pytest.mark.timeout(300)
def test_nothing_reads_more_because_there_are_more_cards(filled, django_db_setup, bounded):
    few = {name: pages_for(place) for name, place in measured(filled(FEW)).items()}
    django_db_setup.clean()

    grew = {}
    everywhere = measured(filled(MANY))
    for name, place in everywhere.items():
        bound = TIMES * few[name] + MORE
        tries = [pages_for(place)]
        while tries[-1] > bound and len(tries) < 4:  # an autovacuum at work meanwhile counts too
            tries.append(pages_for(place))
        if tries[-1] > bound:
            grew[name] = (few[name], tries)
    assert grew == {}
    # Not what the index intersects of words that nearly every card has.
    for tab in ("Waiting on others", "History"):
        none = f"search: {tab}, a word in none"
        common = min(pages_for(everywhere[f"{none}, of common parts"]) for _ in range(4))
        assert common <= pages_for(everywhere[none]) + MORE


def test_a_list_leaves_nothing_to_the_garbage_collector_for_each_of_its_rows(filled):
    people = filled(48)
    few, many = (
        {place.name: collected_after(place) for place in places(people, limit=limit) if place.group == "lists"}
        for limit in (2, 50)
    )
    # A row and what it is joined with refer to each other; its serializers, each for itself, would be a hundred more.
    assert {name: (few[name], many[name]) for name in few if many[name] > few[name] + 1500} == {}


def test_a_card_of_the_benchmark_is_what_the_services_write(filled):
    agent = filled(48).agents[0]
    cards = Approval.objects.filter(agent__team=agent.team, status="pending", title__startswith="Update")
    for card in cards:
        needs = Requirements.from_text(card.requirements)
        assert needs.to_text() == card.requirements
        assert (sorted(needs.pools), sorted(needs.wanted), needs.risk) == (card.pools, card.wanted, card.risk)
    card = cards.filter(pools=["team"], risk="low", wanted=[], claimed_by=None).first()

    (asked,) = open_on(
        parked_run(card.agent, [card.key]),
        ask(
            card.key,
            tool=card.tool,
            args=canonical.parse(card.args),
            title=card.title,
            description=card.description,
            tool_version=card.tool_version,
            expires_in=timedelta(hours=1),
        ),
    )

    theirs, ours = model_to_dict(asked), model_to_dict(card)
    assert theirs.keys() == ours.keys()
    assert {name for name in ours if ours[name] != theirs[name]} <= ITS_OWN
    assert len(card.action) == len(card.review) == len(asked.action)
