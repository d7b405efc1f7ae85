"""Runs that need a person's attention."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals.models import Approval
from runs.clock import DatabaseNow
from runs.models import Run, RunHead
from runs.queries import listed
from runs.states import RunStatus

SHOWN = timedelta(days=7)
MOST = 500


def troubled(teams: Sequence[int]) -> list[UUID]:
    """The runs of these teams that are blocked, or failed lately: the newest, if there are very many."""
    failed = Q(status=RunStatus.FAILED, run__finished_at__gt=DatabaseNow() - SHOWN)
    heads = RunHead.objects.filter(failed | Q(status=RunStatus.BLOCKED), run__team__in=teams)
    return list(heads.order_by("-run__created_at").values_list("run", flat=True)[:MOST])


def silent(teams: Sequence[int]) -> QuerySet[Run]:
    """Those of them that never asked anybody anything, so that no card can stand for them; the newest first."""
    asked = Approval.objects.filter(run=OuterRef("pk"))
    runs = Run.objects.filter(pk__in=troubled(teams)).exclude(Exists(asked))
    return listed(runs).order_by("-created_at", "pk")
