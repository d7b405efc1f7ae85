"""Erasing what the trail says: bodies go, and that they existed, when, and who did what, stays provable."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from approvals.audit.events import EventType, append
from approvals.models import AuditBody, AuditErasure, AuditEvent

log = logging.getLogger(__name__)

BATCH = 500  # events listed in one erasure
CHAIN = "site"
# The events of a run that say what somebody wrote, or what its code said of it.
WORDY = (EventType.RUN_STARTED, EventType.RUN_CANCELLED, EventType.RUN_BLOCKED, EventType.ATTEMPT_REFUSED)
MAY_DELETE = "SELECT has_table_privilege(%s, 'DELETE') AND has_table_privilege(%s, 'UPDATE')"


def erase_bodies(*, person_id: int, by: str) -> int:
    """Delete every body that holds personal data of `person_id`, with its salt; `by` is an actor. Returns how many.

    Each batch is an event of its own that lists what it erased. Without it the database refuses the deletion, and
    `verify_audit` reports the body as missing.
    """
    return _erase(AuditBody.objects.filter(person=person_id), {"person": person_id}, by)


def erase_words(*, run_id: UUID, approvals: Sequence[UUID], by: str) -> int:
    """The same for what the trail says about a run in somebody's words, and all that it says about `approvals`.

    A database role that may not delete from the trail deletes nothing, and says so in the log: the owner's can do it.
    """
    table = AuditBody._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(MAY_DELETE, (table, table))
        if not cursor.fetchone()[0]:
            log.warning(
                "run %s: its words stay in the audit trail, from which this database role may not erase", run_id
            )
            return 0
    of_run = Q(event__chain=f"run:{run_id}", event__type__in=WORDY)
    of_approvals = Q(event__chain__in=[f"approval:{approval}" for approval in approvals])
    return _erase(AuditBody.objects.filter(of_run | of_approvals), {"run": str(run_id)}, by)


def _erase(bodies: "QuerySet[AuditBody]", about: dict[str, Any], by: str) -> int:
    erased = 0
    while batch := _erase_batch(bodies, about, by):
        erased += batch
    return erased


@transaction.atomic
def _erase_batch(found: "QuerySet[AuditBody]", about: dict[str, Any], by: str) -> int:
    bodies = found.select_for_update(of=("self",)).order_by("event_id")
    events = {body.event_id: body.event for body in bodies.select_related("event")[:BATCH]}
    if not events:
        return 0
    listed: dict[str, list[int]] = defaultdict(list)
    for event in events.values():
        listed[event.chain].append(event.n)
    with connection.cursor() as cursor:
        append(
            cursor,
            chain=CHAIN,
            type=EventType.AUDIT_ERASED,
            actor=by,
            team_id=None,
            body={**about, "events": listed},
        )
    # The chain's lock is held until the end of the transaction: the newest event is the one just written.
    erasure = AuditEvent.objects.filter(chain=CHAIN).order_by("n").last()
    AuditErasure.objects.bulk_create(AuditErasure(event_id=event_id, by=erasure) for event_id in events)
    AuditBody.objects.filter(pk__in=events).delete()
    return len(events)
