"""A trail of its own for each test: its key, its anchor, and a way to write and to tamper."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from pytest_django import Settings

from approvals.audit import append
from approvals.audit.keys import trusted_keys
from approvals.audit.verifying import verify_database
from runs.models import Team

KEY = base64.b64encode(bytes(range(32))).decode()
TABLES = ("auditevent", "auditbody", "auditerasure", "auditleaf", "auditseal")


@pytest.fixture(autouse=True)
def trail(settings: Settings, tmp_path: Path) -> Path:
    """The deployment's key and anchor; gives the anchor's path."""
    settings.FERMATA_AUDIT_KEY = KEY
    settings.FERMATA_AUDIT_ANCHOR = str(tmp_path / "anchor")
    return tmp_path / "anchor"


@pytest.fixture
def write(team: Team) -> Callable[..., str]:
    """Append events: `write(3)` gives the chain of a new approval that has three."""

    def make(count: int = 1, chain: str | None = None, **fields: Any) -> str:
        chain = chain or f"approval:{uuid4()}"
        with connection.cursor() as cursor:
            for number in range(count):
                event = {
                    "type": "vote.cast",
                    "actor": "system",
                    "team_id": team.pk,
                    "body": {"number": number, "tool": "refund"},
                }
                append(cursor, chain=chain, **{**event, **fields})
        return chain

    return make


@contextmanager
def unguarded() -> Iterator[Callable[..., None]]:
    """What the owner of the tables can do: switch the triggers off, change rows, switch them on again."""

    def run(statement: str, *values: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)

    for table in TABLES:
        run(f"ALTER TABLE approvals_{table} DISABLE TRIGGER USER")
    yield run
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, tgname FROM pg_trigger"
            " WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'approvals_audit%%'"
        )
        for table, trigger in cursor.fetchall():
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}")


def findings() -> list[str]:
    """What `verify_audit` finds in the database."""
    return [str(finding) for finding in verify_database(trusted_keys()).findings]


def subject(chain: str) -> UUID:
    return UUID(chain.partition(":")[2])
