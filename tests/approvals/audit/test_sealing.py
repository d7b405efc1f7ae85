from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from approvals.audit import anchors, sealing
from approvals.audit.hashing import merkle_root
from approvals.audit.keys import is_signed, trusted_keys
from approvals.audit.records import leaf_hashes, seals
from approvals.audit.sealing import TrailRewritten, seal_due
from approvals.models import AuditEvent, AuditLeaf, AuditSeal
from approvals.tasks import seal
from tests.approvals.audit.conftest import findings, unguarded

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_numbers_events_without_gaps_and_signs_their_root(write: Callable[..., str]) -> None:
    write(3)
    assert seal_due() == 3
    write(2)
    assert seal_due() == 2
    first, second = seals()
    assert (first.seal.first, first.seal.last, second.seal.first, second.seal.last) == (1, 3, 4, 5)
    assert second.seal.prev == first.seal.digest()
    assert second.seal.root == merkle_root(leaf_hashes(second.seal))
    for signed in (first, second):
        assert signed.seal.key in trusted_keys()
        assert is_signed(signed.seal.message(), signed.signature, signed.seal.key)


def test_nothing_due_makes_no_seal() -> None:
    assert seal_due() == 0
    assert not AuditSeal.objects.exists()


def test_a_long_backlog_takes_several_seals(write: Callable[..., str]) -> None:
    write(7)
    with patch.object(sealing, "BATCH", 3):
        assert seal_due() == 7
    assert [(each.seal.first, each.seal.last) for each in seals()] == [(1, 3), (4, 6), (7, 7)]


def test_an_event_that_commits_late_is_sealed_later(write: Callable[..., str]) -> None:
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        late = write()
        pool.submit(write_and_seal, write).result()
    seal_due()
    assert AuditLeaf.objects.get(event__chain=late).no == 2
    assert findings() == []


def write_and_seal(write: Callable[..., str]) -> None:
    try:
        write()
        assert seal_due() == 1
    finally:
        connection.close()


def test_many_sealers_seal_every_event_once(write: Callable[..., str]) -> None:
    write(40)

    def work(_: int) -> int:
        try:
            return seal_due()
        finally:
            connection.close()

    with patch.object(sealing, "BATCH", 3), ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(6))) == 40
    assert list(AuditLeaf.objects.order_by("no").values_list("no", flat=True)) == list(range(1, 41))
    assert findings() == []


def test_every_seal_is_anchored(write: Callable[..., str], trail: Path) -> None:
    for _ in range(2):
        write()
        seal_due()
    assert [(line.no, line.digest) for line in anchors.read(trail)] == [
        (signed.seal.no, signed.seal.digest()) for signed in seals()
    ]


def test_a_seal_whose_sealer_died_is_anchored_by_the_next(write: Callable[..., str], trail: Path) -> None:
    write()
    seal_due()
    trail.write_text("")
    seal_due()
    assert [line.no for line in anchors.read(trail)] == [1]


def test_it_does_not_seal_on_top_of_seals_that_were_replaced(write: Callable[..., str], trail: Path) -> None:
    write()
    seal_due()
    with unguarded() as change:
        change("DELETE FROM approvals_auditseal")
        change("UPDATE approvals_auditleaf SET no = NULL")
    with pytest.raises(TrailRewritten, match="anchored"):
        seal_due()
    assert not AuditSeal.objects.exists()


def test_it_does_not_seal_on_top_of_a_strangers_seal(write: Callable[..., str], settings: Settings) -> None:
    settings.FERMATA_AUDIT_ANCHOR = ""
    write()
    seal_due()
    with unguarded() as change:
        change("UPDATE approvals_auditseal SET root = %s", bytes(32))
    write()
    with pytest.raises(TrailRewritten, match="signed"):
        seal_due()


def test_the_task_seals(write: Callable[..., str]) -> None:
    write()
    seal()
    assert AuditEvent.objects.get().leaf.no == 1
