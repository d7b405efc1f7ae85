"""Celery's front door: each task calls one service."""

from celery import shared_task

from approvals.audit.sealing import seal_due
from approvals.audit.views_log import record_days
from approvals.services import sweeping


@shared_task(ignore_result=True)
def sweep() -> None:
    sweeping.sweep()


@shared_task(ignore_result=True)
def seal() -> None:
    record_days()
    seal_due()
