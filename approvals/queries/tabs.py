"""The inbox's queues: which cards stand in which, for whom, and in which order."""

from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet, TextChoices

from approvals.models import Approval
from approvals.policies.requirements import TEAM, person_pool
from approvals.queries.distinct import open_pools
from approvals.queries.standing import Standing, standing_of
from approvals.queries.visibility import visible_by
from approvals.states import OPEN, ApprovalKind
from runs.clock import DatabaseNow
from runs.models import Run, RunHead
from runs.principals import Person
from runs.states import RunStatus

TROUBLE_SHOWN = timedelta(days=7)
TROUBLES = 500  # runs in trouble, at most: the newest


class Tab(TextChoices):
    MINE = "mine", "Mine"
    UNCLAIMED = "unclaimed", "Unclaimed"
    OTHERS = "others", "Waiting on others"
    ATTENTION = "attention", "Needs attention"
    HISTORY = "history", "History"


def in_tab(person: Person, tab: Tab) -> QuerySet[Approval]:
    """The person's cards in `tab`, in no order.

    Mine: theirs to decide, and claimed by them or asked of them by name. Unclaimed: theirs to decide, and nobody is on
    it. Others: open, and not theirs, or not theirs any more. Attention: calls in doubt, and the newest card of each run
    that is blocked or failed lately.
    """
    standing = standing_of(person.user)
    visible = visible_by(standing)
    if tab is Tab.HISTORY:
        return visible.exclude(status__in=sorted(OPEN))
    if tab is Tab.ATTENTION:
        in_doubt = Q(kind=ApprovalKind.IN_DOUBT, status__in=sorted(OPEN))
        return visible.filter(in_doubt | Q(pk__in=_newest_of_troubled_runs(visible, standing)))
    waiting = visible.filter(status__in=sorted(OPEN), kind=ApprovalKind.ACTION)
    me, claimed = [standing.person], Q(claimed_until__gt=DatabaseNow())
    if tab is Tab.OTHERS:
        elsewhere = Q(voted_by__contains=me) | (claimed & ~Q(claimed_by=person.user)) | _asked_by(standing)
        return waiting.filter(elsewhere | _without_seat(standing))
    free = waiting.filter(_seat(standing)).exclude(voted_by__contains=me).exclude(_asked_by(standing))
    wanted = Q(wanted__contains=[person_pool(standing.person)])
    if tab is Tab.MINE:
        return free.filter((claimed & Q(claimed_by=person.user)) | (wanted & ~claimed))
    return free.filter(Q(claimed_until__isnull=True) | Q(claimed_until__lte=DatabaseNow())).exclude(wanted)


def _seat(standing: Standing) -> Q:
    """Whether the person has a seat, near enough to sort cards by; the rules decide when they vote."""
    seat = Q(team__in=standing.reviews, pools__contains=[TEAM])
    return seat | Q(pools__overlap=standing.group_pools) if standing.groups else seat


def _without_seat(standing: Standing) -> Q:
    """The opposite, in a form that an index can find: by the few sets of pools that open cards have."""
    if not standing.reviews and not standing.groups:
        return Q(team__in=standing.teams)
    seatless = Q(pk__in=[])
    for team, pools in open_pools(standing.teams):
        mine = {*standing.group_pools, *([TEAM] if team in standing.reviews else [])}
        if mine.isdisjoint(pools):
            seatless |= Q(team=team, pools=pools)
    return seatless


def _asked_by(standing: Standing) -> Q:
    """What the person, or somebody for whom they vote, asked for: theirs to see, and not to decide."""
    asked = Q(run__in=Run.requesters.through.objects.filter(user__in=standing.people).values("run"))
    if standing.agents:
        asked |= Q(agent__in=standing.agents)
    if standing.keys:
        asked |= Q(run__in=Run.objects.filter(key__in=standing.keys).values("pk"))
    return asked


def _newest_of_troubled_runs(visible: QuerySet[Approval], standing: Standing) -> list[Any]:
    failed = Q(status=RunStatus.FAILED, run__finished_at__gt=DatabaseNow() - TROUBLE_SHOWN)
    troubled = RunHead.objects.filter(
        failed | Q(status=RunStatus.BLOCKED), run__team__in=(*standing.teams, *standing.reviews, *standing.outside)
    )
    runs = list(troubled.order_by("-run__created_at").values_list("run", flat=True)[:TROUBLES])
    newest = visible.filter(run__in=runs).order_by("run_id", "-created_at").distinct("run_id")
    return list(newest.values_list("pk", flat=True))
