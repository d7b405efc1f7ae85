"""Sealing: events get their numbers, and every batch a signature that is linked to the one before.

The database could be rewritten by whoever owns it; it cannot be rewritten so that these signatures still fit.
"""

from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, transaction

from approvals.audit import anchors
from approvals.audit.anchors import Anchored
from approvals.audit.hashing import NO_HASH, Seal, merkle_root
from approvals.audit.keys import is_signed, public_bytes, signing_key, trusted_keys
from approvals.models import AuditSeal
from runs.clock import database_now

BATCH = 1024  # leaves under one seal: a proof of inclusion is at most ten hashes
SEALER_LOCK = 0x5EA1ED

# By id: a chain's events get their ids under the chain's lock, so their numbers follow the chain's order.
NUMBER = """
WITH due AS (
    SELECT event_id FROM approvals_auditleaf WHERE no IS NULL ORDER BY event_id LIMIT %(batch)s
), numbered AS (
    UPDATE approvals_auditleaf AS leaf SET no = %(last)s + due.place
    FROM (SELECT event_id, row_number() OVER (ORDER BY event_id) AS place FROM due) AS due
    WHERE leaf.event_id = due.event_id
    RETURNING leaf.event_id, leaf.no
)
SELECT event.hash FROM numbered JOIN approvals_auditevent AS event ON event.id = numbered.event_id ORDER BY numbered.no
"""


@dataclass
class TrailRewritten(Exception):
    """The seals in the database are not the ones that were made: nothing is sealed on top of them."""

    no: int
    why: str

    def __str__(self) -> str:
        return f"seal {self.no} {self.why}; run manage.py verify_audit"


def seal_due() -> int:
    """Number and sign every committed event that has no seal yet, and anchor every seal that is not anchored.

    Returns how many events were sealed. Raises `TrailRewritten` and `KeyProblem`.
    """
    sealed = 0
    while batch := _seal_batch():
        sealed += batch
    return sealed


@transaction.atomic
def _seal_batch() -> int:
    """One seal, if anything is due. The seal of a batch is anchored at the start of the next: it is committed then."""
    key, trusted = signing_key(), trusted_keys()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SEALER_LOCK])
        if path := anchors.anchor_path():
            _anchor(path, trusted)
        newest = AuditSeal.objects.order_by("no").last()
        before = checked(newest, trusted) if newest else None
        last = before.last if before else 0
        cursor.execute(NUMBER, {"batch": BATCH, "last": last})
        hashes = [bytes(row[0]) for row in cursor.fetchall()]
    if hashes:
        _store(
            key,
            Seal(
                no=before.no + 1 if before else 1,
                prev=before.digest() if before else NO_HASH,
                first=last + 1,
                last=last + len(hashes),
                root=merkle_root(hashes),
                at=database_now(),
                key=public_bytes(key),
            ),
        )
    return len(hashes)


def _store(key: Ed25519PrivateKey, seal: Seal) -> None:
    AuditSeal.objects.create(
        no=seal.no,
        prev=seal.prev,
        first=seal.first,
        last=seal.last,
        root=seal.root,
        at=seal.at,
        key=seal.key,
        signature=key.sign(seal.message()),
    )


def _anchor(path: Path, trusted: frozenset[bytes]) -> None:
    known = anchors.newest(path)
    if known:
        row = AuditSeal.objects.filter(no=known.no).first()
        if not row or as_seal(row).digest() != known.digest:
            raise TrailRewritten(known.no, f"is not the one that was anchored in {path}")
    missing = AuditSeal.objects.filter(no__gt=known.no if known else 0).order_by("no")
    digests = [Anchored(row.no, checked(row, trusted).digest()) for row in missing.iterator()]
    if digests:
        anchors.write(path, digests)


def as_seal(row: AuditSeal) -> Seal:
    """The signed part of a stored seal."""
    return Seal(
        no=row.no,
        prev=bytes(row.prev),
        first=row.first,
        last=row.last,
        root=bytes(row.root),
        at=row.at,
        key=bytes(row.key),
    )


def checked(row: AuditSeal, trusted: frozenset[bytes]) -> Seal:
    """The stored seal, if one of the `trusted` keys signed it. Raises `TrailRewritten`."""
    seal = as_seal(row)
    if seal.key not in trusted or not is_signed(seal.message(), bytes(row.signature), seal.key):
        raise TrailRewritten(row.no, "is not signed by this deployment's key")
    return seal
