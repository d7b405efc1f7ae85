"""What somebody who owns the database can do to it, and how each shows."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection
from pytest_django import Settings

from approvals.audit import anchors
from approvals.audit.hashing import NO_HASH, Link, event_hash
from approvals.audit.keys import trusted_keys
from approvals.audit.records import records, seals
from approvals.audit.sealing import seal_due
from approvals.audit.verifying import GUARDS, verify_database
from approvals.models import AuditEvent
from tests.approvals.audit.conftest import findings, unguarded

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chains(write: Callable[..., str]) -> list[str]:
    """Three chains of three events each: leaves 1 to 9, three to a seal; and one event that is not sealed yet."""
    made = []
    for _ in range(3):
        made.append(write(3))
        seal_due()
    write(chain=made[0])
    return made


def test_a_trail_that_nobody_touched_is_sound(chains: list[str]) -> None:
    report = verify_database(trusted_keys())
    assert (report.findings, report.count) == ([], 0)
    assert (report.events, report.seals, report.unsealed, report.erased) == (10, 3, 1, 0)


def test_an_empty_trail_is_sound() -> None:
    assert findings() == []


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("actor", "person:7"),
        ("type", "vote.undone"),
        ("at", "2020-01-01Z"),
        ("team_id", None),
        ("body_commit", NO_HASH),
    ],
)
def test_a_changed_event_is_named(chains: list[str], column: str, value: Any) -> None:
    with unguarded() as change:
        change(f"UPDATE approvals_auditevent SET {column} = %s WHERE chain = %s AND n = 2", value, chains[1])
    assert f"changed: {chains[1]} 2 (leaf 5): the event does not have its hash" in findings()


def test_a_changed_body_is_named(chains: list[str]) -> None:
    with unguarded() as change:
        change(
            "UPDATE approvals_auditbody SET body = '{\"number\":9}' FROM approvals_auditevent AS event"
            " WHERE event_id = event.id AND chain = %s AND n = 3",
            chains[2],
        )
    assert findings() == [f"changed: {chains[2]} 3 (leaf 9): the body is not the one that was committed to"]


def rehash(change: Callable[..., None], chain: str, n: int) -> None:
    """Give an event the hash that its columns now have, as a forger would."""
    record = next(records(AuditEvent.objects.filter(chain=chain, n=n)))
    change("UPDATE approvals_auditevent SET hash = %s WHERE chain = %s AND n = %s", event_hash(record.link), chain, n)


def test_a_changed_event_with_a_new_hash_is_named_by_its_chain_and_by_its_seal(chains: list[str]) -> None:
    with unguarded() as change:
        change("UPDATE approvals_auditevent SET actor = 'person:7' WHERE chain = %s AND n = 2", chains[1])
        rehash(change, chains[1], 2)
    assert findings() == [
        f"changed: {chains[1]} 3 (leaf 6): event 2 before it is not the one that it was linked to",
        "changed: seal 2: leaf 4 to 6: not the events, or not in the order, that were sealed",
    ]


def test_the_last_event_of_a_chain_with_a_new_hash_is_named_by_its_seal(chains: list[str]) -> None:
    with unguarded() as change:
        change("UPDATE approvals_auditevent SET actor = 'person:7' WHERE chain = %s AND n = 3", chains[1])
        rehash(change, chains[1], 3)
    assert findings() == ["changed: seal 2: leaf 4 to 6: not the events, or not in the order, that were sealed"]


def delete(change: Callable[..., None], chain: str, n: int) -> None:
    for table in ("auditbody", "auditleaf"):
        change(
            f"DELETE FROM approvals_{table} WHERE event_id ="
            " (SELECT id FROM approvals_auditevent WHERE chain = %s AND n = %s)",
            chain,
            n,
        )
    change("DELETE FROM approvals_auditevent WHERE chain = %s AND n = %s", chain, n)


def test_a_deleted_event_is_named(chains: list[str]) -> None:
    with unguarded() as change:
        delete(change, chains[1], 2)
    assert findings() == [
        f"missing: leaf 5: the next event is {chains[1]} 3 (leaf 6)",
        f"missing: {chains[1]} 2: the next event of the chain is 3",
    ]


def test_the_last_event_of_a_chain_and_of_a_seal_is_missed(chains: list[str]) -> None:
    with unguarded() as change:
        delete(change, chains[2], 3)
    assert findings() == ["missing: leaf 9: seal 3 covers it"]


def test_a_deleted_chain_is_missed(chains: list[str]) -> None:
    with unguarded() as change:
        for n in (1, 2, 3):
            delete(change, chains[1], n)
    assert findings() == ["missing: leaf 4 to 6: seal 2 covers it"]


def test_a_deleted_body_is_missed(chains: list[str]) -> None:
    with unguarded() as change:
        change(
            "DELETE FROM approvals_auditbody USING approvals_auditevent AS event"
            " WHERE event_id = event.id AND chain = %s AND n = 2",
            chains[0],
        )
    assert findings() == [f"missing: {chains[0]} 2 (leaf 2): its body is gone and no erasure lists it"]


def test_two_swapped_numbers_are_found(chains: list[str]) -> None:
    ids = list(AuditEvent.objects.filter(chain=chains[1], n__in=(1, 2)).order_by("n").values_list("pk", flat=True))
    with unguarded() as change:
        change("UPDATE approvals_auditleaf SET no = 99 WHERE event_id = %s", ids[0])
        change("UPDATE approvals_auditleaf SET no = 4 WHERE event_id = %s", ids[1])
        change("UPDATE approvals_auditleaf SET no = 5 WHERE event_id = %s", ids[0])
    assert f"reordered: {chains[1]} 1 (leaf 5): event 3 of the chain should come here" in findings()
    assert "changed: seal 2: leaf 4 to 6: not the events, or not in the order, that were sealed" in findings()


def test_two_swapped_events_are_found(chains: list[str]) -> None:
    with unguarded() as change:
        change("UPDATE approvals_auditevent SET n = 99 WHERE chain = %s AND n = 1", chains[1])
        change("UPDATE approvals_auditevent SET n = 1 WHERE chain = %s AND n = 2", chains[1])
        change("UPDATE approvals_auditevent SET n = 2 WHERE chain = %s AND n = 99", chains[1])
    found = findings()
    assert f"changed: {chains[1]} 2 (leaf 4): the event does not have its hash" in found
    assert f"changed: {chains[1]} 1 (leaf 5): the event does not have its hash" in found


def insert(change: Callable[..., None], chain: str, n: int, prev: bytes, leaf: int | None = None) -> None:
    """An event with a good hash, put there without the trail's own door; numbered if `leaf` says so."""
    change(
        "INSERT INTO approvals_auditevent (chain, n, at, actor, type, body_commit, prev, hash)"
        " VALUES (%s, %s, '2026-01-01Z', 'system', 'vote.cast', %s, %s, %s)",
        *(chain, n, NO_HASH, prev, NO_HASH),
    )
    record = next(records(AuditEvent.objects.filter(chain=chain, n=n)))
    link: Link = record.link
    change("UPDATE approvals_auditevent SET hash = %s WHERE chain = %s AND n = %s", event_hash(link), chain, n)
    if leaf:
        change(
            "INSERT INTO approvals_auditleaf SELECT id, %s FROM approvals_auditevent WHERE chain = %s AND n = %s",
            *(leaf, chain, n),
        )


def test_an_added_event_is_named(chains: list[str]) -> None:
    last = AuditEvent.objects.get(chain=chains[2], n=3)
    with unguarded() as change:
        insert(change, chains[2], 4, bytes(last.hash))
    assert findings() == [f"added: {chains[2]} 4: it never went through the trail's own door"]


def test_an_added_event_with_a_number_is_named(chains: list[str]) -> None:
    last = AuditEvent.objects.get(chain=chains[2], n=3)
    with unguarded() as change:
        insert(change, chains[2], 4, bytes(last.hash), leaf=10)
    found = findings()
    assert f"added: {chains[2]} 4 (leaf 10): it is numbered as if it were sealed and no seal covers it" in found


def test_an_added_seal_is_found(chains: list[str]) -> None:
    with unguarded() as change:
        change(
            "INSERT INTO approvals_auditseal (no, prev, first, last, root, at, key, signature)"
            " SELECT 4, prev, 10, 10, root, at, key, signature FROM approvals_auditseal WHERE no = 3"
        )
    assert "changed: seal 4: the signature is not by its key, or not of this seal" in findings()


def test_a_deleted_seal_is_missed(chains: list[str]) -> None:
    with unguarded() as change:
        change("DELETE FROM approvals_auditseal WHERE no = 2")
    found = findings()
    assert "missing: seal 2: the next one is seal 3" in found
    assert "missing: seal 2: it was anchored and is not in the database" in found


def test_a_forgers_own_seals_are_not_trusted(chains: list[str], settings: Settings, trail: Path) -> None:
    """Everything rewritten, and sealed anew: the key is another, and so is what was anchored."""
    kept = trail.read_text()
    mine = trusted_keys()
    with unguarded() as change:
        change("DELETE FROM approvals_auditseal")
        change("UPDATE approvals_auditleaf SET no = NULL")
    trail.unlink()
    settings.FERMATA_AUDIT_KEY = base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode()
    seal_due()
    trail.write_text(kept)
    found = [str(finding) for finding in verify_database(mine).findings]
    assert "unproven: seal 1: it is signed by a key that is not trusted here" in found
    assert "changed: seal 1: it is not the one that was anchored" in found


def test_seals_cut_off_at_the_end_are_missed_by_the_anchor(chains: list[str]) -> None:
    with unguarded() as change:
        change("DELETE FROM approvals_auditseal WHERE no = 3")
        change("UPDATE approvals_auditleaf SET no = NULL WHERE no > 6")
    assert findings() == ["missing: seal 3: it was anchored and is not in the database"]


def test_it_needs_no_anchor(chains: list[str], settings: Settings) -> None:
    settings.FERMATA_AUDIT_ANCHOR = ""
    assert findings() == []


def test_an_anchor_that_lacks_seals_is_no_reproach(chains: list[str], trail: Path) -> None:
    """Several hosts seal, each with an anchor of its own."""
    lines = list(anchors.read(trail))
    trail.unlink()
    anchors.write(trail, lines[1:2])
    assert findings() == []


def test_a_disabled_trigger_is_named(chains: list[str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE approvals_auditevent ENABLE TRIGGER approvals_auditevent_unchanged")
        found = findings()
        cursor.execute("ALTER TABLE approvals_auditevent ENABLE ALWAYS TRIGGER approvals_auditevent_unchanged")
    assert found == ["changed: approvals_auditevent: a trigger that keeps it append-only is missing or disabled"]


def test_the_list_of_triggers_is_the_databases() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, count(*) FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'approvals_audit%%' GROUP BY 1"
        )
        assert dict(cursor.fetchall()) == GUARDS


def test_every_seal_of_the_database_is_read_in_order(chains: list[str]) -> None:
    assert [signed.seal.no for signed in seals()] == [1, 2, 3]
