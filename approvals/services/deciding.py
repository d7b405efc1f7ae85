"""The transaction in which somebody acts on an approval: locks, clock, today's rules; and every refusal on record."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar
from uuid import UUID

from django.db import OperationalError, connection, transaction
from psycopg import errors as psycopg_errors

from approvals import queries
from approvals.audit import EventType
from approvals.errors import NotVisible, Refused
from approvals.models import Approval
from approvals.services.case import Case, take
from approvals.services.freshness import freshen
from runs.principals import Principal

P = ParamSpec("P")
R = TypeVar("R")

DEADLOCK_TRIES = 3


@contextmanager
def deciding(approval_id: UUID, *, by: Principal, attempt: str) -> Iterator[Case]:
    """Hold the approval for `by`, who wants to `attempt` something (a word for the audit trail).

    A `Refused` raised inside undoes what the block wrote, is put on record, and is raised again after the commit.
    Raises `NotVisible` for an approval that does not exist or is not theirs to see.
    """
    run_id = Approval.objects.filter(pk=approval_id).values_list("run_id", flat=True).first()
    if run_id is None:
        raise NotVisible(approval_id)
    refused: Refused | None = None
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        case = take(cursor, approval_id=approval_id, run_id=run_id)
        freshen(case)
        try:
            with transaction.atomic():
                if not queries.visible_to(by).filter(pk=approval_id).exists():
                    raise NotVisible(approval_id)
                yield case
        except Refused as refusal:
            refused = refusal
            case.record(
                EventType.ATTEMPT_REFUSED,
                by.actor,
                {"attempt": attempt, "reason": type(refusal).__name__, "message": str(refusal)},
            )
    if refused is not None:
        raise refused


def retry_deadlocks(service: Callable[P, R]) -> Callable[P, R]:
    """Run a service, which owns its transaction, again when PostgreSQL chose it to end a deadlock (40P01)."""

    @wraps(service)
    def retrying(*args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(DEADLOCK_TRIES - 1):
            try:
                return service(*args, **kwargs)
            except OperationalError as error:
                if not isinstance(error.__cause__, psycopg_errors.DeadlockDetected):
                    raise
        return service(*args, **kwargs)

    return retrying
