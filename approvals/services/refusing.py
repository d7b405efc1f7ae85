"""Attempts that are refused for lack of right, or that end before a service: put on record, all in one way."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals import audit
from approvals.audit import EventType
from approvals.errors import ChangeRefused, NotEligible
from approvals.services.deciding import deciding, retry_deadlocks
from runs.hooks import Cursor
from runs.models import Membership
from runs.principals import Person, Principal


@retry_deadlocks
def refuse(*, approval_id: UUID, by: Principal, attempt: str, why: str) -> None:
    """Refuse `attempt` (a word for the trail). Raises `NotVisible`, or else `NotEligible` with `why`."""
    with deciding(approval_id, by=by, attempt=attempt):
        raise NotEligible(approval_id, why)


def refuse_change(*, by: User, attempt: str, teams: Collection[int], why: str, **facts: Any) -> None:
    """Refuse to change something of `teams`, as `attempting` has it. Raises `ChangeRefused` with `why`."""
    with attempting(by=by, attempt=attempt, teams=teams, **facts):
        raise ChangeRefused(why)


@contextmanager
def attempting(*, by: User, attempt: str, teams: Collection[int], **facts: Any) -> Iterator[Cursor]:
    """The transaction in which `by` wants to `attempt` something (a few words for the audit trail) with `teams` (ids).

    A `ChangeRefused` raised inside undoes what the block wrote, is put on record in the trail of each team, with the
    `facts`, and is raised again after the commit. A stranger, for whom none of the teams exists, leaves no trace there:
    or anybody could fill it.
    """
    refused: ChangeRefused | None = None
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        try:
            with transaction.atomic():
                yield cursor
        except ChangeRefused as refusal:
            refused = refusal
            body = {"attempt": attempt, **facts, "reason": type(refusal).__name__, "message": str(refusal)}
            if _knows(by, teams):
                refused_to = Person(by).actor
                audit.append_to_teams(cursor, teams, type=EventType.ATTEMPT_REFUSED, actor=refused_to, body=body)
    if refused is not None:
        raise refused


def _knows(by: User, teams: Collection[int]) -> bool:
    return by.is_superuser or Membership.objects.filter(user=by, team__in=teams).exists()
