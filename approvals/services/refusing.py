"""Attempts that end before a service: put on record like those that a service refuses."""

from uuid import UUID

from approvals.errors import NotEligible
from approvals.services.deciding import deciding, retry_deadlocks
from runs.principals import Principal


@retry_deadlocks
def refuse(*, approval_id: UUID, by: Principal, attempt: str, why: str) -> None:
    """Refuse `attempt` (a word for the trail). Raises `NotVisible`, or else `NotEligible` with `why`."""
    with deciding(approval_id, by=by, attempt=attempt):
        raise NotEligible(approval_id, why)
