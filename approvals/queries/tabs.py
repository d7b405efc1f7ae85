"""The inbox's queues: which cards stand in which, for whom, and in which order."""

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet, TextChoices

from approvals.models import Approval
from approvals.policies.requirements import TEAM, person_pool
from approvals.queries.distinct import open_pools
from approvals.queries.standing import Standing
from approvals.queries.trouble import troubled
from approvals.queries.visibility import by_team, visible_by
from approvals.states import OPEN, ApprovalKind
from runs.clock import DatabaseNow
from runs.models import Agent, Run, WebhookPost
from runs.states import PostState, RunStatus

TOLD_WITHIN = timedelta(minutes=5)
TROUBLES = 500  # runs in trouble, at most: the newest
REQUESTED = 5000  # likewise of what one person asked for, and of what people have taken up


class Tab(TextChoices):
    MINE = "mine", "Mine"
    UNCLAIMED = "unclaimed", "Unclaimed"
    OTHERS = "others", "Waiting on others"
    ATTENTION = "attention", "Needs attention"
    HISTORY = "history", "History"


WAITING = (Tab.MINE, Tab.UNCLAIMED, Tab.OTHERS)  # all of their cards are open


def in_tab(standing: Standing, tab: Tab, among: Sequence[UUID] | None = None) -> list[QuerySet[Approval]]:
    """The cards in `tab` of the person whose standing it is, in no order: in parts, each of which some index has in the
    queue's order. A card may be in several.

    Mine: theirs to decide, and claimed by them or asked of them by name. Unclaimed: theirs to decide, and nobody is on
    it. Others: open, and not theirs, or not theirs any more. Attention: calls in doubt, and the newest card of each run
    that is blocked or failed lately, or whose agent its webhook cannot tell.

    `among`: of those for which somebody waits, only these few.
    """
    visible = visible_by(standing)
    voted, claimed = _voted_and_claimed(standing)
    if tab is Tab.HISTORY:
        return by_team(visible.exclude(status__in=sorted(OPEN)), standing)
    if tab is Tab.ATTENTION:
        in_doubt = Q(kind=ApprovalKind.IN_DOUBT, status__in=sorted(OPEN))
        troubled = Q(pk__in=_newest_of_troubled_runs(visible, standing))
        return by_team(visible.filter(in_doubt | troubled), standing)
    waiting = waiting_for(standing)
    if among is not None:
        waiting = waiting.filter(pk__in=among)
    if tab is Tab.OTHERS:
        if among is not None:
            return [waiting.filter(on_others(standing, waiting))]
        few = _taken_up(standing, waiting)
        many = [*_by_own_agents(standing), *_by_pools_without_seat(standing)]
        return [waiting.filter(pk__in=few), *(waiting.filter(part) for part in many)]
    requested = Run.requesters.through.objects.filter(user__in=standing.people).values("run")
    free = waiting.filter(_seat(standing)).exclude(voted | _of_own_agents(standing)).exclude(run__in=requested)
    wanted = Q(wanted__contains=[person_pool(standing.person)])
    if tab is Tab.MINE:
        return by_team(free.filter((claimed & Q(claimed_by=standing.person)) | (wanted & ~claimed)), standing)
    unclaimed = Q(claimed_until__isnull=True) | Q(claimed_until__lte=DatabaseNow())
    return by_team(free.filter(unclaimed).exclude(wanted), standing)


def waiting_for(standing: Standing) -> QuerySet[Approval]:
    """Everything that the person sees and for which somebody waits, theirs to decide or not."""
    return visible_by(standing).filter(status__in=sorted(OPEN), kind=ApprovalKind.ACTION)


def on_others(standing: Standing, waiting: QuerySet[Approval]) -> Q:
    """Whether a card of `waiting` waits on others, in words that no index knows: to be asked of each of few cards.

    PostgreSQL would read all cards of a set of pools for it.
    """
    return reduce(or_, [Q(pk__in=_taken_up(standing, waiting)), *_by_own_agents(standing), ~_seat(standing)])


def _taken_up(standing: Standing, waiting: QuerySet[Approval]) -> list[UUID]:
    """What the person or a colleague is on already, and what one of them asked for.

    Read first: behind a filter, PostgreSQL would look for it among all that the filter lets through.
    """
    voted, claimed = _voted_and_claimed(standing)
    taken = waiting.filter(voted | (claimed & ~Q(claimed_by=standing.person)))
    return [*taken.order_by().values_list("pk", flat=True)[:REQUESTED], *_asked_for(standing)]


def _voted_and_claimed(standing: Standing) -> tuple[Q, Q]:
    """Whether the person has voted on a card, and whether anybody is on it."""
    claimed = Q(claimed_by__isnull=False, claimed_until__gt=DatabaseNow())  # the first half is for the planner
    return Q(voted_by__contains=[standing.person]), claimed


def _seat(standing: Standing) -> Q:
    """Whether the person has a seat, near enough to sort cards by; the rules decide when they vote."""
    seat = Q(team__in=standing.reviews, pools__contains=[TEAM])
    return seat | Q(pools__overlap=standing.group_pools) if standing.groups else seat


def _by_pools_without_seat(standing: Standing) -> list[Q]:
    """The opposite, for each of the few sets of pools that open cards have."""
    if not standing.reviews and not standing.groups:
        return [Q(team=team) for team in standing.teams]
    return [
        Q(team=team, pools=pools)
        for team, pools in open_pools(standing.teams)
        if {*standing.group_pools, *([TEAM] if team in standing.reviews else [])}.isdisjoint(pools)
    ]


def _of_own_agents(standing: Standing) -> Q:
    """What came from an agent that the person, or somebody for whom they vote, owns or made a key for."""
    own = Q(agent__in=standing.agents)
    return own | Q(run__key__in=standing.keys) if standing.keys else own


def _by_own_agents(standing: Standing) -> list[Q]:
    """The same, for each of these agents."""
    keyed = Agent.objects.filter(keys__in=standing.keys).exclude(pk__in=standing.agents).distinct()
    return [
        *(Q(agent=agent) for agent in standing.agents),
        *(Q(agent=agent, run__key__in=standing.keys) for agent in keyed),
    ]


def _asked_for(standing: Standing) -> list[UUID]:
    """The open cards of the runs that one of them started, retried or forked: the newest, if there are very many."""
    requested = Approval.objects.filter(run__requesters__in=standing.people, status__in=sorted(OPEN))
    return list(requested.order_by("-created_at").values_list("pk", flat=True)[:REQUESTED])


def _newest_of_troubled_runs(visible: QuerySet[Approval], standing: Standing) -> list[Any]:
    runs = troubled(standing.reach) + _untold(standing)
    newest = visible.filter(run__in=runs).order_by("run_id", "-created_at").distinct("run_id")
    return list(newest.values_list("pk", flat=True))


def _untold(standing: Standing) -> list[Any]:
    """Runs that could go on, and whose agents their webhooks have not told for a while."""
    posts = WebhookPost.objects.filter(
        state__in=(PostState.PENDING, PostState.GIVEN_UP),
        created_at__lt=DatabaseNow() - TOLD_WITHIN,
        run__head__status=RunStatus.QUEUED,
        run__team__in=standing.reach,
    )
    return list(posts.order_by("-created_at").values_list("run", flat=True)[:TROUBLES])
