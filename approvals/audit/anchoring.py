"""Sending seals to the anchors elsewhere, in order, each at least once."""

import logging

from django.conf import settings
from django.db import transaction

from approvals.audit.hashing import SignedSeal
from approvals.audit.keys import trusted_keys
from approvals.audit.receivers import KINDS, NotTaken, Receiver
from approvals.audit.sealing import checked
from approvals.models import AuditAnchored, AuditSeal
from runs.clock import database_now

log = logging.getLogger(__name__)

BATCH = 100


def receivers() -> dict[str, Receiver]:
    """The anchors of this deployment that are elsewhere. Raises `ImproperlyConfigured`, naming the setting."""
    found = {}
    for kind, make in KINDS.items():
        name = f"FERMATA_AUDIT_ANCHOR_{kind.upper()}"
        if value := getattr(settings, name):
            found[kind] = make(name, value)
    return found


def anchor_due() -> int:
    """Send every seal that a receiver has not had yet. Returns how many were taken.

    A receiver that does not take them is tried again the next time. Raises `TrailRewritten`.
    """
    return sum(_send_due(kind, receiver) for kind, receiver in receivers().items())


def _send_due(kind: str, receiver: Receiver) -> int:
    sent = 0
    try:
        while batch := _send_batch(kind, receiver):
            sent += batch
    except NotTaken as error:
        log.warning("seals are not anchored: %s", error)
    return sent


@transaction.atomic
def _send_batch(kind: str, receiver: Receiver) -> int:
    """Who dies between the sending and the commit sends again: that is why a seal can come twice, and never not at all.

    The row's lock lets one process send at a time; another finds nothing to do.
    """
    AuditAnchored.objects.get_or_create(kind=kind)
    mark = AuditAnchored.objects.select_for_update(skip_locked=True).filter(kind=kind).first()
    if mark is None:
        return 0
    trusted = trusted_keys()
    rows = list(AuditSeal.objects.filter(no__gt=mark.no).order_by("no")[:BATCH])
    if rows:
        receiver.send([SignedSeal(checked(row, trusted), bytes(row.signature)) for row in rows])
        mark.no, mark.at = rows[-1].no, database_now()
        mark.save(update_fields=["no", "at"])
    return len(rows)
