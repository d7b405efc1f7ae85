"""Runs that need a person's attention."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from approvals.models import Approval
from runs.clock import DatabaseNow
from runs.models import Run, RunHead
from runs.queries import listed
from runs.states import RunStatus

SHOWN = timedelta(days=7)
MOST = 100  # of each


def troubled(teams: Sequence[int]) -> list[UUID]:
    """The runs of these teams that are blocked, or failed lately: those that failed last, if there are very many."""
    blocked = RunHead.objects.filter(status=RunStatus.BLOCKED, run__team__in=teams).order_by("status", "run")
    failed = Run.objects.filter(
        team__in=teams, finished_at__gt=DatabaseNow() - SHOWN, head__status=RunStatus.FAILED
    ).exclude(error_type="")
    return [
        *blocked.values_list("run", flat=True)[:MOST],
        *failed.order_by("-finished_at").values_list("pk", flat=True)[:MOST],
    ]


def silent(teams: Sequence[int]) -> QuerySet[Run]:
    """Those of them that never asked anybody anything, so that no card can stand for them; the newest first."""
    asked = Approval.objects.filter(run=OuterRef("pk"))
    runs = Run.objects.filter(pk__in=troubled(teams)).exclude(Exists(asked))
    return listed(runs).order_by("-created_at", "pk")
