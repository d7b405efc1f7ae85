"""The migration that drops the key from an event to its team, while others are at work on both tables."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.db import OperationalError, connection

from runs.engine.connection import connect

migration = import_module("approvals.migrations.0019_no_key_to_the_team")

pytestmark = pytest.mark.django_db(transaction=True)


def keys() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(migration.KEY)
        return [name for (name,) in cursor.fetchall()]


@pytest.fixture(autouse=True)
def _with_key() -> None:
    with connection.schema_editor(atomic=False) as editor:
        migration.add(None, editor)
    assert keys() == ["approvals_auditevent_team"]


def test_it_waits_until_nobody_has_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    with connect() as other:
        other.execute("BEGIN; LOCK TABLE runs_team IN ACCESS SHARE MODE")
        tries = []

        def end_the_other(pause: float) -> None:
            tries.append(keys())
            other.execute("ROLLBACK")

        monkeypatch.setattr(migration, "sleep", end_the_other)
        with connection.schema_editor(atomic=False) as editor:
            migration.drop(None, editor)
    assert tries == [["approvals_auditevent_team"]]
    assert keys() == []


def test_it_gives_up_and_can_be_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "TRIES", 1)
    with connect() as other, connection.schema_editor(atomic=False) as editor:
        other.execute("BEGIN; LOCK TABLE approvals_auditevent IN ROW EXCLUSIVE MODE")
        with pytest.raises(OperationalError):
            migration.drop(None, editor)
        other.execute("ROLLBACK")
        migration.drop(None, editor)
        migration.drop(None, editor)
    assert keys() == []
