"""The first cards of a queue that fit a condition which has no index of its own there: those ahead in it are asked.

PostgreSQL intersects whole indexes for the same, those of all that was ever decided among them.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet

from approvals.models import Approval
from approvals.queries import queue
from approvals.queries.standing import Standing
from approvals.queries.tabs import Tab, in_tab, on_others, waiting_for
from approvals.queries.visibility import by_team

FILTERS = {"agent", "tool", "risk"}


def ahead(standing: Standing, tab: Tab, **chosen: str) -> list[UUID] | None:
    """The first cards in `tab` that fit one filter, by the name that `queue.matching` has for it: of each team as many
    as are counted, or all that there are. None: another tab or filter, or those ahead do not tell.

    What is a person's own is little, and asked whether it fits; what waits on others is among much that fits.
    """
    if len(chosen) != 1 or not chosen.keys() <= FILTERS:
        return None
    if tab is Tab.MINE:
        return first_that(queue.exactly(standing.reach, **chosen), in_tab(standing, tab), queue.COUNTED)
    if tab is Tab.OTHERS:
        waiting = waiting_for(standing)
        fitting = queue.matching(by_team(waiting, standing), standing.reach, False, **chosen)
        return first_that(on_others(standing, waiting), fitting, queue.COUNTED)
    return None


def first_that(fit: Q, parts: Sequence[QuerySet[Approval]], enough: int) -> list[UUID] | None:
    """The first cards of each part that fit, in the queue's order: `enough`, or all that there are.

    None: there may be more, and the first `LOOKED_AT` of a part have not so many.
    """
    found: list[UUID] = []
    for part in parts:
        these, are_all = look(fit, part)
        if len(these) < enough and not are_all:
            return None
        found += these[:enough]
    return found


def look(fit: Q, cards: QuerySet[Approval]) -> tuple[list[UUID], bool]:
    """Those of the first `LOOKED_AT` that fit, in the queue's order; and whether there are no others."""
    rows = cards.order_by(*queue.in_order(settled=False)).annotate(fits=ExpressionWrapper(fit, BooleanField()))
    read = list(rows.values_list("pk", "fits")[: queue.LOOKED_AT])
    return [pk for pk, fits in read if fits], len(read) < queue.LOOKED_AT
