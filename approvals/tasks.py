"""Celery's front door: each task calls one service."""

from celery import shared_task

from approvals.audit.anchoring import anchor_due
from approvals.audit.sealing import seal_due
from approvals.audit.views_log import record_days
from approvals.services import noticing, policymaking, sweeping


@shared_task(name="approvals.tasks.sweep")
def sweep() -> None:
    """Every two seconds, on the sweeper's queue."""
    sweeping.sweep()


@shared_task(name="approvals.tasks.seal")
def seal() -> None:
    """Every ten seconds."""
    record_days()
    seal_due()


@shared_task(name="approvals.tasks.anchor")
def anchor() -> None:
    """Every ten seconds, where an anchor elsewhere is set up."""
    anchor_due()


@shared_task(name="approvals.tasks.notify")
def notify() -> None:
    """Every ten seconds, where mail is set up."""
    noticing.notify()


@shared_task(name="approvals.tasks.tighten")
def tighten(team_id: int) -> None:
    """After a change of a team's rules."""
    policymaking.tighten_open(team_id=team_id)
