"""The queue beside the card: tabs with counts, filters, rows."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from approvals.forms.filters import Filters, read_filters, read_tab
from approvals.models import Approval
from approvals.policies import Requirements
from approvals.presentation.oddities import texts_of
from approvals.queries.ahead import ahead
from approvals.queries.queue import (
    COUNTED,
    LOOKED_AT,
    SHORT,
    choices,
    count,
    count_since,
    few_open,
    matching,
    page,
)
from approvals.queries.standing import Standing, standing_of
from approvals.queries.tabs import WAITING, Tab, in_tab
from approvals.queries.trouble import silent
from approvals.queries.unperformed import unperformed
from approvals.queries.visibility import visible_by
from approvals.states import Risk
from runs.clock import database_now
from runs.models import Run
from runs.presentation.status import status_line
from runs.presentation.text import escaped, warnings
from runs.principals import Person

PAGE = 40
SILENT = 20  # runs that asked nothing, above the cards; the runs' page lists them all
EMPTY = {
    Tab.MINE: ("Nothing waits for you", "Cards that you claim, and those that ask for you by name, stand here."),
    Tab.UNCLAIMED: ("All quiet", "Nothing waits for a decision. New cards appear here by themselves."),
    Tab.OTHERS: ("Nobody else is asked", "Cards that others have to decide, or that you voted on, stand here."),
    Tab.ATTENTION: ("Nothing is wrong", "Runs that cannot go on, and calls in doubt, stand here."),
    Tab.HISTORY: ("No decisions yet", "What was decided stands here, newest first."),
}
DUE_LABELS = (("hour", "Within an hour"), ("day", "Within a day"), ("week", "Within a week"))


@dataclass(frozen=True)
class TabLine:
    name: str
    label: str
    query: str
    count: str | None
    is_current: bool
    empty: str
    empty_hint: str


@dataclass(frozen=True)
class Choice:
    """One select. `options` are (value, label) pairs of plain text."""

    name: str
    label: str
    value: str
    options: list[tuple[str, str]]


@dataclass(frozen=True)
class RowLine:
    approval: Approval
    votes_given: int
    votes_needed: int
    is_odd: bool


def read_inbox(address: QueryDict, person: Person, *, beside: Approval | None = None) -> dict[str, Any]:
    """What the inbox's templates need, for the queue that the page's address names. `beside` is the open card's."""
    filters = read_filters(address)
    standing = standing_of(person.user)
    few = few_open(standing, **filters.chosen)
    heads: dict[Tab, list[UUID] | None] = {
        tab: ahead(standing, tab, **filters.chosen) for tab in Tab if tab is not Tab.HISTORY
    }

    @cache
    def queue(tab: Tab) -> list[QuerySet[Approval]]:
        if few is not None and tab in WAITING:
            return in_tab(standing, tab, among=few)
        return matching(in_tab(standing, tab), standing.reach, tab is Tab.HISTORY, **filters.chosen)

    counts: dict[Tab, int] = {
        tab: count(queue(tab)) if head is None else min(len(head), COUNTED) for tab, head in heads.items()
    }
    silent_runs = Run.objects.none() if filters.chosen else silent(standing.teams)
    counts[Tab.ATTENTION] += silent_runs.order_by().count()
    tab = read_tab(address) or next((tab for tab in counts if counts[tab]), Tab.UNCLAIMED)
    after = address.get("after", "")
    head = None if after else heads.get(tab)
    cards = queue(tab) if head is None else [Approval.objects.filter(pk__in=head)]
    rows, place = page(cards, settled=tab is Tab.HISTORY, after=after, size=PAGE)
    tabs = [_tab_line(each, filters, counts.get(each), is_current=each is tab) for each in Tab]
    since = _moment(address.get("since", ""))
    return {
        "tabs": tabs,
        "tab": next(line for line in tabs if line.is_current),
        "rows": [row_line(row) for row in rows],
        "next_card": next((row for row in rows if row.is_open and row != beside), None),
        "query": filters.query(tab),
        "filters": filters,
        "filter_choices": _choices(filters, *choices(standing)),
        "is_filtered": bool(filters.chosen),
        "silent": [(run, status_line(run)) for run in silent_runs[:SILENT]] if tab is Tab.ATTENTION else [],
        "unperformed": _unperformed(standing) if tab in {Tab.ATTENTION, Tab.HISTORY} else "",
        "looked_at": LOOKED_AT if 0 < len(filters.q) <= SHORT else 0,
        "next_query": filters.query(tab, after=place) if place else "",
        "since": database_now().isoformat(),
        "news": count_since(queue(tab), since) if since else 0,
    }


def row_line(approval: Approval) -> RowLine:
    needs = Requirements.from_text(approval.requirements)
    given = sum(vote.revision == approval.revision for vote in approval.votes.all())
    return RowLine(
        approval=approval,
        votes_given=given,
        votes_needed=max([needs.approvers, *(seat.count for seat in needs.seats)]),
        is_odd=bool(warnings(*texts_of(approval))),
    )


def _tab_line(tab: Tab, filters: Filters, count: int | None, *, is_current: bool) -> TabLine:
    empty, hint = EMPTY[tab]
    shown = None if count is None else _counted(count)
    return TabLine(tab.value, tab.label, filters.query(tab), shown, is_current, empty, hint)


def _unperformed(standing: Standing) -> str:
    """How many approved actions are outstanding; empty for none."""
    found = unperformed(visible_by(standing)).order_by()[:COUNTED].count()
    return _counted(found) if found else ""


def _counted(found: int) -> str:
    return f"{COUNTED - 1}+" if found >= COUNTED else str(found)


def _choices(filters: Filters, agents: list[str], tools: list[str]) -> list[Choice]:
    return [
        Choice("agent", "Agent", filters.agent, [(name, escaped(name)) for name in agents]),
        Choice("tool", "Tool", filters.tool, [(name, escaped(name)) for name in tools]),
        Choice("risk", "Risk", filters.risk, [(risk.value, risk.label) for risk in reversed(Risk)]),
        Choice("due", "Due", filters.due, list(DUE_LABELS)),
    ]


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_datetime(text)
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
