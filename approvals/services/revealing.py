"""Showing what pages mask: never silently."""

from uuid import UUID

from django.contrib.auth.models import User

from approvals.audit import EventType
from approvals.models import Approval
from approvals.services.deciding import deciding, retry_deadlocks
from runs.principals import Person


@retry_deadlocks
def reveal(*, approval_id: UUID, person: User) -> Approval:
    """Note that the person is shown the credentials in a card's arguments and description. Raises `NotVisible`."""
    by = Person(person)
    with deciding(approval_id, by=by, attempt="reveal") as case:
        case.record(EventType.CONTENT_REVEALED, by.actor, {"person": person.pk, "revision": case.approval.revision})
    return case.approval
