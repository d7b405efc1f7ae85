"""The database role of docs/audit.md: it writes the trail and seals it, and can do nothing else to it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

import pytest
from django.db import ProgrammingError, connection, transaction

from approvals.audit.sealing import seal_due
from tests.support.processes import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

ROLE = f"fermata_app_of_test_{os.getpid()}"  # roles belong to the whole server


@pytest.fixture
def role() -> Iterator[str]:
    documented = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "audit.md").read_text(), re.DOTALL)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
        cursor.execute(f"GRANT SELECT ON test_clock TO {ROLE}")
        for statements in documented:
            cursor.execute(statements.replace("fermata_app", ROLE))
        cursor.execute(f"SET ROLE {ROLE}")
    yield ROLE
    with connection.cursor() as cursor:
        cursor.execute(f"RESET ROLE; DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


def test_it_appends_and_seals(write: Callable[..., str], role: str) -> None:
    write(2)
    assert seal_due() == 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE approvals_auditevent SET n = 1",
        "DELETE FROM approvals_auditbody",
        "UPDATE approvals_auditleaf SET event_id = 1",
        "TRUNCATE approvals_auditseal",
        "ALTER TABLE approvals_auditevent DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
    ],
)
def test_it_may_do_nothing_else(role: str, change: str) -> None:
    with (
        pytest.raises(ProgrammingError, match=r"permission denied|must be owner"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change)
