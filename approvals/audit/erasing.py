"""Erasing a person's data from the trail: bodies go, and that they existed, when, and who did what, stays provable."""

from collections import defaultdict

from django.db import connection, transaction

from approvals.audit.events import EventType, append
from approvals.models import AuditBody, AuditErasure, AuditEvent

BATCH = 500  # events listed in one erasure
CHAIN = "site"


def erase_bodies(*, person_id: int, by: str) -> int:
    """Delete every body that holds personal data of `person_id`, with its salt; `by` is an actor. Returns how many.

    Each batch is an event of its own that lists what it erased. Without it the database refuses the deletion, and
    `verify_audit` reports the body as missing.
    """
    erased = 0
    while batch := _erase_batch(person_id, by):
        erased += batch
    return erased


@transaction.atomic
def _erase_batch(person_id: int, by: str) -> int:
    bodies = AuditBody.objects.select_for_update(of=("self",)).filter(person=person_id).order_by("event_id")
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
            body={"person": person_id, "events": listed},
        )
    # The chain's lock is held until the end of the transaction: the newest event is the one just written.
    erasure = AuditEvent.objects.filter(chain=CHAIN).order_by("n").last()
    AuditErasure.objects.bulk_create(AuditErasure(event_id=event_id, by=erasure) for event_id in events)
    AuditBody.objects.filter(pk__in=events).delete()
    return len(events)
