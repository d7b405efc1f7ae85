"""Proving again who one is, for one card as it stands and one verdict."""

from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User

from approvals.errors import StepUpNeeded
from approvals.models import StepUp
from approvals.services.case import Case
from runs.clock import database_now

LIFE = timedelta(minutes=2)


def confirm(*, approval_id: UUID, person: User, review: str, verdict: str) -> None:
    """Note that the person has just signed in again for this. The caller has checked the credential."""
    StepUp.objects.create(approval_id=approval_id, person=person, review=review, verdict=verdict, at=database_now())


def use_step_up(case: Case, person: User, verdict: str) -> None:
    """Use up the confirmation for the card's current review digest and this verdict. Raises `StepUpNeeded`."""
    fresh = (
        StepUp.objects.filter(
            approval=case.approval,
            person=person,
            review=case.approval.review,
            verdict=verdict,
            used_at__isnull=True,
            at__gt=case.now - LIFE,
        )
        .order_by("-at")
        .first()
    )
    if fresh is None:
        raise StepUpNeeded(case.approval.pk, case.approval.review, verdict)
    fresh.used_at = case.now
    fresh.save(update_fields=["used_at"])
