"""The inbox's queues: which cards stand in which, for whom, and in which order."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet, TextChoices

from approvals.models import Approval, Vote
from approvals.policies.requirements import TEAM, person_pool
from approvals.queries.visibility import givers_of, pools_of, visible_to
from approvals.states import OPEN, ApprovalKind
from runs.clock import DatabaseNow
from runs.models import Agent, Membership, Role, Run
from runs.principals import Person
from runs.states import RunStatus

TROUBLE_SHOWN = timedelta(days=7)


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
    visible, user = visible_to(person), person.user
    if tab is Tab.HISTORY:
        return visible.exclude(status__in=sorted(OPEN))
    if tab is Tab.ATTENTION:
        in_doubt = Q(kind=ApprovalKind.IN_DOUBT, status__in=sorted(OPEN))
        return visible.filter(in_doubt | Q(pk__in=_newest_of_troubled_runs(visible)))
    waiting = visible.filter(status__in=sorted(OPEN), kind=ApprovalKind.ACTION)
    claimed = Q(claimed_until__gt=DatabaseNow())
    free = waiting.filter(_may_vote(user)).exclude(_voted(user)).exclude(claimed & ~Q(claimed_by=user))
    if tab is Tab.OTHERS:
        return waiting.exclude(pk__in=free.values("pk"))
    theirs = (claimed & Q(claimed_by=user)) | Q(wanted__contains=[person_pool(user.pk)])
    return free.filter(theirs) if tab is Tab.MINE else free.exclude(theirs)


def _may_vote(user: User) -> Q:
    """Whether the person has a seat, near enough to sort cards by; the rules decide when they vote."""
    people = [user.pk, *givers_of(user)]
    teams = Membership.objects.filter(user__in=people, roles__contains=[Role.REVIEWER]).values("team")
    seat = Q(team__in=teams, pools__contains=[TEAM]) | Q(pools__overlap=[*pools_of(user), *map(person_pool, people)])
    owners = Agent.owners.through.objects.filter(agent=OuterRef("agent"), user__in=people)
    starters = Run.requesters.through.objects.filter(run=OuterRef("run"), user__in=people)
    return seat & ~Exists(owners) & ~Exists(starters) & ~Q(run__key__created_by__in=people)


def _voted(user: User) -> Exists:
    return Exists(Vote.objects.filter(approval=OuterRef("pk"), revision=OuterRef("revision"), voter=user, void=False))


def _newest_of_troubled_runs(visible: QuerySet[Approval]) -> QuerySet[Approval, Any]:
    failed = Q(run__head__status=RunStatus.FAILED, run__finished_at__gt=DatabaseNow() - TROUBLE_SHOWN)
    troubled = visible.filter(failed | Q(run__head__status=RunStatus.BLOCKED))
    return troubled.order_by("run_id", "-created_at").distinct("run_id").values("pk")
