"""The inbox's queues: which card stands where, for whom, in which order."""

from datetime import timedelta

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from approvals.models import Approval, Policy
from approvals.presentation.inbox import read_inbox
from approvals.queries.ahead import ahead
from approvals.queries.queue import COUNTED, LOOKED_AT, choices, count, few_open, matching, page
from approvals.queries.standing import standing_of
from approvals.queries.tabs import Tab, in_tab
from approvals.services.claims import claim
from approvals.services.delegating import delegate
from approvals.services.voting import undo
from runs.clock import database_now
from runs.models import Agent, Membership, RunHead, Team
from runs.principals import Person
from runs.states import RunStatus
from tests.approvals.scenes import ask, cast, in_group, open_on, opened, parked_run, policy

pytestmark = pytest.mark.django_db


def tabs_of(person) -> dict[str, set]:
    """The tabs that hold something, with the ids of their cards: the same when they are looked for among few."""
    standing = standing_of(person)
    everything = list(Approval.objects.values_list("pk", flat=True))
    cards, among = (
        {tab.value: {card.pk for part in in_tab(standing, tab, few) for card in part} for tab in Tab}
        for few in (None, everything)
    )
    assert among == cards
    return {tab: found for tab, found in cards.items() if found}


def test_a_new_card_is_unclaimed_for_its_reviewers(agent, person):
    approval = opened(agent)

    assert tabs_of(person("ada")) == {"unclaimed": {approval.pk}}
    assert tabs_of(person("olga", "operator")) == {"others": {approval.pk}}
    assert tabs_of(person("amy", "admin")) == {}


def test_a_claim_moves_it_to_mine_and_to_the_others_of_everybody_else(agent, person, move_clock):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent)
    claim(approval_id=approval.pk, person=ada)

    assert tabs_of(ada) == {"mine": {approval.pk}}
    assert tabs_of(bob) == {"others": {approval.pk}}
    move_clock(timedelta(hours=1))
    assert tabs_of(ada) == tabs_of(bob) == {"unclaimed": {approval.pk}}


def test_what_asks_for_somebody_by_name_is_theirs(agent, person):
    ada, bob = person("ada"), person("bob")
    approval = opened(agent, users=("ada",))

    assert tabs_of(ada) == {"mine": {approval.pk}}
    assert tabs_of(bob) == {"unclaimed": {approval.pk}}


def test_what_one_has_voted_on_waits_for_others_until_it_is_edited_or_taken_back(agent, person):
    policy(agent, "Pairs", (None, 2))
    ada, bob = person("ada"), person("bob")
    approval = opened(agent)
    cast(approval, ada)

    assert tabs_of(ada) == {"others": {approval.pk}}
    assert tabs_of(bob) == {"unclaimed": {approval.pk}}
    undo(approval_id=approval.pk, voter=ada)
    assert tabs_of(ada) == {"unclaimed": {approval.pk}}
    cast(approval, ada)
    cast(approval, bob, "edit", args="{}")
    assert tabs_of(ada) == {"unclaimed": {approval.pk}}
    assert tabs_of(bob) == {"others": {approval.pk}}


@pytest.mark.parametrize("how", ["requester", "owner", "key"])
def test_what_one_asked_for_waits_for_others(agent, person, how):
    ada = person("ada")
    fields = {}
    if how == "owner":
        agent.owners.add(ada)
    if how == "key":
        fields["key"] = agent.keys.create(prefix="p", digest=bytes(32), scopes=["runs:read"], created_by=ada)
    run = parked_run(agent, **fields)
    if how == "requester":
        run.requesters.add(ada)
    approval = open_on(run, ask())[0]

    assert tabs_of(ada) == {"others": {approval.pk}}


def test_what_needs_another_pool_waits_for_others(agent, person):
    Policy.objects.update(is_active=False)
    policy(agent, "Money", ("finance", 1))
    ada, fay = person("ada"), in_group(person("fay", "operator"), "finance")
    approval = opened(agent)

    assert tabs_of(ada) == {"others": {approval.pk}}
    assert tabs_of(fay) == {"unclaimed": {approval.pk}}


def test_what_waits_for_others_for_several_reasons_stands_there_once(agent, person):
    Policy.objects.update(is_active=False)
    policy(agent, "Money", ("finance", 1))
    ada, fay = person("ada"), in_group(person("fay"), "finance")
    agent.owners.add(ada)
    late, soon = (opened(agent, args={"n": n}, expires_in=timedelta(hours=n)) for n in (2, 1))
    claim(approval_id=late.pk, person=fay)
    others = in_tab(standing_of(ada), Tab.OTHERS)

    assert sum(late in part for part in others) == 3
    assert count(others) == 2
    assert page(others, settled=False, after="", size=9) == ([soon, late], "")


def test_a_stand_in_finds_the_cards_of_who_is_away(agent, person):
    ada, olga = person("ada"), person("olga", "operator")
    now = database_now()
    delegate(giver=ada, taker=olga, starts_at=now, ends_at=now + timedelta(days=1), by=ada)

    approval = opened(agent)

    assert tabs_of(olga) == {"unclaimed": {approval.pk}}


def test_a_pool_member_from_outside_sees_only_what_they_may_decide(agent, django_user_model):
    fay = in_group(django_user_model.objects.create_user("fay"), "finance")
    opened(agent)
    policy(agent, "Money", ("finance", 1), tools=["wire"])
    approval = opened(agent, tool="wire")

    assert tabs_of(fay) == {"unclaimed": {approval.pk}}


def test_other_teams_stay_apart(agent, person):
    opened(Agent.objects.create(team=Team.objects.create(name="Other"), name="agent"))

    assert tabs_of(person("ada")) == {}


def test_trouble_needs_attention(agent, reviewer):
    approval = opened(agent)
    RunHead.objects.filter(run=approval.run_id).update(status=RunStatus.BLOCKED, reason="", detail="no code")

    assert tabs_of(reviewer) == {"unclaimed": {approval.pk}, "attention": {approval.pk}}


def test_what_is_decided_is_history_newest_first(agent, reviewer):
    first, second = opened(agent, args={"n": 1}), opened(agent, args={"n": 2})
    cast(first, reviewer)
    cast(second, reviewer, "reject")

    history = in_tab(standing_of(reviewer), Tab.HISTORY)
    assert page(history, settled=True, after="", size=5) == ([second, first], "")


def test_pages_follow_each_other_due_first(agent, reviewer):
    late = opened(agent, args={"n": 0}, expires_in=timedelta(hours=9))
    never = [opened(agent, args={"n": n}) for n in range(1, 4)]
    soon = opened(agent, args={"n": 4}, expires_in=timedelta(hours=1))
    cards, seen, place = in_tab(standing_of(reviewer), Tab.UNCLAIMED), [], ""
    for _ in range(3):
        found, place = page(cards, settled=False, after=place, size=2)
        seen += found

    assert seen == [soon, late, *never]
    assert place == ""
    assert page(cards, settled=False, after="forged", size=1)[0] == [soon]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"q": "a-8"}, ["b"]),
        ({"q": "REFUND"}, ["a", "b"]),
        ({"q": "gâteau"}, ["b"]),
        ({"q": "50%"}, []),
        ({"q": "agen"}, ["a", "b"]),
        ({"q": "call"}, []),
        ({"agent": "agent", "tool": "refund.now"}, ["b"]),
        ({"risk": "high"}, ["a"]),
        ({"due": "hour"}, ["a"]),
        ({"agent": "nobody"}, []),
    ],
)
def test_filters(agent, reviewer, filters, found):
    cards = {
        opened(agent, args={"order": "A-7"}, risk="high", expires_in=timedelta(minutes=30)).pk: "a",
        opened(agent, args={"order": "A-8", "note": "gâteau"}, tool="refund.now").pk: "b",
    }

    shown = matching([Approval.objects.all()], **filters)[0]
    assert sorted(cards[pk] for pk in shown.values_list("pk", flat=True)) == found


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ({"q": "order A-70007"}, ["a"]),
        ({"q": "order B-70007"}, []),
        ({"q": "refund the order A-70007"}, ["a"]),
        ({"tool": "refund", "risk": "low"}, ["a", "b"]),
        ({"agent": "agent", "tool": "wire"}, []),
        ({"q": "order"}, None),  # too many
        ({"tool": "refund"}, None),  # one index has these in order
        ({"q": "or", "tool": "refund"}, None),  # looks at the first cards only
        ({}, None),
    ],
)
def test_what_fits_a_search_or_several_filters_is_read_once_if_it_is_little(
    agent, reviewer, monkeypatch, chosen, found
):
    monkeypatch.setattr("approvals.queries.queue.FEW", 2)
    cards = {
        opened(agent, title="Refund the order A-70007").pk: "a",
        opened(agent, title="order A-70008").pk: "b",
        opened(agent, title="order A-70009", risk="high").pk: "c",
    }
    few = few_open(standing_of(reviewer), **chosen)

    assert (few and sorted(cards[pk] for pk in few)) == found


def test_a_search_looks_into_the_cards_that_wait_once_for_all_tabs(agent, reviewer, client):
    opened(agent, title="Refund parcel 70007")
    client.force_login(reviewer)
    with CaptureQueriesContext(connection) as asked:
        assert "parcel 70007" in client.get("/", {"tab": "unclaimed", "q": "parcel 70007"}).text

    searches = [
        query["sql"] for query in asked if '"description" ||' in query["sql"] and "in_doubt" not in query["sql"]
    ]
    assert len(searches) == 2  # for the number, and for all of it


@pytest.fixture
def others(agent, person):
    """Three cards that somebody who is not in finance cannot decide, and one of another tool that they can."""
    Policy.objects.update(is_active=False)
    policy(agent, "Money", ("finance", 1), tools=["refund"])
    opened(agent, tool="wire")
    return [opened(agent, args={"n": n}, expires_in=timedelta(hours=n)) for n in (1, 2, 3)]


def test_what_fits_a_filter_is_asked_whose_it_is(others, person, monkeypatch):
    ada = standing_of(person("ada"))

    def found(tab, **chosen):
        return ahead(ada, tab, **chosen)

    monkeypatch.setattr("approvals.queries.queue.COUNTED", 2)
    assert found(Tab.OTHERS, tool="refund") == [card.pk for card in others[:2]]
    assert found(Tab.OTHERS, tool="wire") == found(Tab.MINE, agent="agent") == []
    assert found(Tab.OTHERS) is found(Tab.OTHERS, tool="refund", agent="agent") is found(Tab.OTHERS, q="Refund") is None
    assert found(Tab.UNCLAIMED, tool="refund") is found(Tab.HISTORY, tool="refund") is None
    monkeypatch.setattr("approvals.queries.queue.LOOKED_AT", 1)
    assert found(Tab.OTHERS, tool="refund") is None  # the first does not tell


def test_a_filter_intersects_no_set_of_pools_while_the_first_that_fit_tell(others, person):
    with CaptureQueriesContext(connection) as asked:
        read_inbox(QueryDict("tab=others&tool=refund"), Person(person("ada")))

    assert [query["sql"] for query in asked if '"pools" = ' in query["sql"]] == []


@pytest.mark.parametrize("looked_at", [1, 2, 100])
def test_a_filtered_queue_is_the_same_however_many_are_asked(others, person, monkeypatch, looked_at):
    monkeypatch.setattr("approvals.queries.queue.LOOKED_AT", looked_at)
    monkeypatch.setattr("approvals.queries.queue.COUNTED", 3)
    monkeypatch.setattr("approvals.presentation.inbox.PAGE", 2)
    ada, cards, query = person("ada"), [], "tab=others&tool=refund"
    for _ in range(2):
        page = read_inbox(QueryDict(query), Person(ada))
        cards += [row.approval for row in page["rows"]]
        assert next(line.count for line in page["tabs"] if line.name == "others") == "3"
        query = page["next_query"]

    assert cards == others
    assert query == ""


def test_an_id_finds_its_card(agent):
    approval = opened(agent)

    for text in (str(approval.pk), str(approval.run_id), "call_1"):
        assert matching([Approval.objects.all()], q=text)[0].get() == approval


def test_choices_and_counts(agent, reviewer):
    opened(agent)
    opened(agent, tool="wire")

    assert choices(standing_of(reviewer)) == (["agent"], ["refund", "wire"])
    assert count([Approval.objects.all()]) == 2 < COUNTED


def test_a_page_of_several_teams_has_the_first_of_all_of_them(agent, reviewer):
    elsewhere = Agent.objects.create(team=Team.objects.create(name="Other"), name="agent")
    Membership.objects.create(user=reviewer, team=elsewhere.team, roles=["reviewer"])
    never = [opened(each, args={"n": n}) for n, each in enumerate((agent, elsewhere, agent))]
    due = [
        opened(each, args={"n": n}, expires_in=timedelta(hours=n))
        for n, each in enumerate((elsewhere, agent, elsewhere), 3)
    ]
    standing = standing_of(reviewer)
    cards, seen, place = in_tab(standing, Tab.UNCLAIMED), [], ""
    for _ in range(3):
        found, place = page(cards, settled=False, after=place, size=2)
        seen += found

    assert seen == [*due, *never]
    assert place == ""
    assert count(cards) == 6
    assert count(matching(cards, standing.reach, agent="agent")) == 6


def test_pages_of_history_follow_each_other(agent, reviewer):
    cards = [opened(agent, args={"n": n}) for n in range(5)]
    for card in cards:
        cast(card, reviewer)
    history, seen, place = in_tab(standing_of(reviewer), Tab.HISTORY), [], ""
    for _ in range(3):
        found, place = page(history, settled=True, after=place, size=2)
        seen += found

    assert seen == cards[::-1]
    assert place == ""


def test_a_short_search_looks_at_the_first_cards_only(agent, reviewer, monkeypatch):
    monkeypatch.setattr("approvals.queries.queue.LOOKED_AT", 1)
    soon = opened(agent, args={"word": "qz"}, expires_in=timedelta(hours=1))
    opened(agent, args={"word": "qz"}, expires_in=timedelta(hours=2))
    waiting = in_tab(standing_of(reviewer), Tab.UNCLAIMED)

    assert matching(waiting, q="qz")[0].get() == soon
    assert count(matching(waiting, q='"qz"')) == 2


def test_the_page_says_when_a_search_is_too_short_to_look_everywhere(reviewer, client):
    client.force_login(reviewer)

    assert f"the first {LOOKED_AT} cards only" in client.get("/", {"tab": "unclaimed", "q": "qz"}).text
    assert "cards only" not in client.get("/", {"tab": "unclaimed", "q": "word"}).text


def test_nothing_is_found_across_two_parts_of_a_card(agent):
    opened(agent, tool="refund", args={"order": "A-7"})

    assert not matching([Approval.objects.all()], q="refundRefund")[0].exists()
