"""Sending seals to the anchors elsewhere, in order, each at least once."""

import logging

from django.conf import settings
from django.db import connection

from approvals.audit.hashing import SignedSeal
from approvals.audit.keys import trusted_keys
from approvals.audit.receivers import NotTaken, Receiver, Syslog, Webhook
from approvals.audit.sealing import checked
from approvals.models import AuditAnchored, AuditSeal

log = logging.getLogger(__name__)

BATCH = 100

# A claim lasts longer than a batch can take; whoever was stopped for longer finds that the mark has moved.
CLAIM = """
    UPDATE approvals_audit_anchored SET claimed_until = fermata_now() + interval '60 s'
    WHERE kind = %s AND (claimed_until IS NULL OR claimed_until <= fermata_now())
    RETURNING no
"""
MARK = "UPDATE approvals_audit_anchored SET no = %s, at = fermata_now() WHERE kind = %s AND no = %s"
RELEASE = "UPDATE approvals_audit_anchored SET claimed_until = NULL WHERE kind = %s"


def receivers() -> dict[str, Receiver]:
    """The anchors of this deployment that are elsewhere. Raises `ImproperlyConfigured`, naming the setting."""
    found: dict[str, Receiver] = {}
    if value := settings.FERMATA_AUDIT_ANCHOR_SYSLOG:
        ca = settings.FERMATA_AUDIT_ANCHOR_SYSLOG_CA
        found["syslog"] = Syslog.from_setting("FERMATA_AUDIT_ANCHOR_SYSLOG", value, ca=ca)
    if value := settings.FERMATA_AUDIT_ANCHOR_WEBHOOK:
        found["webhook"] = Webhook.from_setting("FERMATA_AUDIT_ANCHOR_WEBHOOK", value)
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


def _send_batch(kind: str, receiver: Receiver) -> int:
    """Who dies between the sending and the mark sends again: that is why a seal can come twice, and never not at all.

    One process sends at a time, by a claim and not by a lock: no transaction is open while the receiver is waited for.
    """
    AuditAnchored.objects.get_or_create(kind=kind)
    with connection.cursor() as cursor:
        cursor.execute(CLAIM, (kind,))
        row = cursor.fetchone()
        if row is None:
            return 0
        (no,) = row
        try:
            rows = list(AuditSeal.objects.filter(no__gt=no).order_by("no")[:BATCH])
            if rows:
                trusted = trusted_keys()
                receiver.send([SignedSeal(checked(row, trusted), bytes(row.signature)) for row in rows])
                cursor.execute(MARK, (rows[-1].no, kind, no))
        finally:
            cursor.execute(RELEASE, (kind,))
    return len(rows)
