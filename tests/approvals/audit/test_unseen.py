"""What docs/audit.md says that a check cannot see. Each test is a claim of that page: that, and what does see it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from approvals.audit.anchoring import anchor_due
from approvals.audit.sealing import seal_due
from approvals.audit.views_log import record_days, record_view
from approvals.models import Approval, AuditAnchored, AuditEvent, AuditSeal
from runs.models import Agent, Membership
from tests.approvals.audit.conftest import findings, unguarded
from tests.approvals.audit.test_role import role
from tests.approvals.audit.test_verifying_database import delete
from tests.approvals.scenes import opened

__all__ = ["role"]

pytestmark = pytest.mark.django_db(transaction=True)

LIE = "SELECT approvals_audit_append('site', 'approval.settled', 'person:1', NULL, '', '{}', NULL)"


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def cut_off(seal: int) -> None:
    """Take away the newest seal and everything under it, as the owner of the tables can."""
    gone = AuditSeal.objects.get(no=seal)
    events = list(AuditEvent.objects.filter(leaf__no__gte=gone.first).values_list("chain", "n"))
    with unguarded() as change:
        for chain, n in events:
            delete(change, chain, n)
        change("DELETE FROM approvals_auditseal WHERE no = %s", seal)


def test_the_restricted_role_can_add_what_is_not_true(write: Callable[..., str], role: str) -> None:
    write()
    execute(LIE)
    seal_due()
    assert findings() == []
    assert AuditEvent.objects.get(chain="site").actor == "person:1"  # and it can never be taken back


def test_tables_outside_of_the_trail_are_not_compared_with_it(
    write: Callable[..., str], person: Callable[..., User]
) -> None:
    write()
    ada = person("ada")
    seal_due()
    Membership.objects.filter(user=ada).update(roles=["admin"])
    assert findings() == []


def test_before_it_is_sealed_the_end_of_a_chain_can_be_taken_away(write: Callable[..., str]) -> None:
    chain = write(2)
    with unguarded() as change:
        delete(change, chain, 2)
    seal_due()
    assert findings() == []


def test_while_nothing_is_sealed_a_check_counts_what_waits_and_calls_it_sound(write: Callable[..., str]) -> None:
    write(3)
    assert findings() == []
    assert AuditEvent.objects.filter(leaf__no=None).count() == 3


def test_the_newest_seals_can_be_cut_off_with_all_that_they_cover(
    write: Callable[..., str], settings: Settings, trail: Path
) -> None:
    write(2)
    seal_due()
    write(2)
    seal_due()
    seal_due()  # anchors the last seal
    cut_off(2)

    assert findings() == ["missing: seal 2: it was anchored and is not in the database"]
    settings.FERMATA_AUDIT_ANCHOR = ""
    assert findings() == []
    write()
    seal_due()  # goes on as if nothing had been
    assert findings() == []
    settings.FERMATA_AUDIT_ANCHOR = str(trail)
    assert findings() == ["changed: seal 2: it is not the one that was anchored"]


def test_a_guard_that_does_nothing_counts_as_a_guard(write: Callable[..., str]) -> None:
    """What was sealed is still safe: a change of it is found by its hash."""
    chain = write(2)
    seal_due()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_functiondef('approvals_audit_refuse()'::regprocedure)")
        honest = cursor.fetchone()[0]
    try:
        execute(
            "CREATE OR REPLACE FUNCTION approvals_audit_refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RETURN NEW; END $$"
        )
        assert findings() == []
        execute("UPDATE approvals_auditevent SET actor = 'person:9' WHERE n = 2")
        assert any(finding.startswith(f"changed: {chain} 2") for finding in findings())
    finally:
        execute(honest)


def test_views_of_today_are_not_in_the_trail_yet(
    agent: Agent, reviewer: User, move_clock: Callable[[timedelta], None]
) -> None:
    card = opened(agent)
    record_view(approval=card, viewer=reviewer)
    execute("DELETE FROM approvals_cardview")
    move_clock(timedelta(days=1))
    record_days()
    assert not AuditEvent.objects.filter(type="approval.viewed").exists()
    assert findings() == []
    assert Approval.objects.filter(pk=card.pk).exists()


def test_a_mark_that_is_moved_leaves_a_gap_at_the_receiver(
    write: Callable[..., str], settings: Settings, tmp_path: Path
) -> None:
    settings.FERMATA_AUDIT_ANCHOR_SYSLOG = str(tmp_path / "nobody listens")
    write()
    seal_due()
    AuditAnchored.objects.create(kind="syslog", no=1)
    assert anchor_due() == 0  # the receiver will get number 2 next, and never had number 1
    assert findings() == []
