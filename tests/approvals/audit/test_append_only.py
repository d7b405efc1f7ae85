from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection, transaction

from approvals.audit.sealing import seal_due
from approvals.models import AuditEvent

pytestmark = pytest.mark.django_db(transaction=True)

TABLES = ("auditevent", "auditbody", "auditerasure", "auditleaf", "auditseal")
CHANGES = [
    "UPDATE approvals_auditevent SET actor = 'system'",
    "UPDATE approvals_auditevent SET team_id = NULL",
    "DELETE FROM approvals_auditevent",
    "UPDATE approvals_auditbody SET body = '{}'",
    "UPDATE approvals_auditbody SET person_id = NULL",
    "DELETE FROM approvals_auditbody",
    "UPDATE approvals_auditleaf SET no = no + 1",
    "UPDATE approvals_auditleaf SET no = NULL",
    "DELETE FROM approvals_auditleaf",
    "UPDATE approvals_auditseal SET last = last + 1",
    "DELETE FROM approvals_auditseal",
    *(f"TRUNCATE approvals_{table} CASCADE" for table in TABLES),
]


@pytest.mark.parametrize("before", ["", "SET LOCAL session_replication_role = replica; "])
@pytest.mark.parametrize("change", CHANGES)
def test_it_refuses(change: str, before: str, write: Callable[..., str]) -> None:
    write(2)
    seal_due()
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(before + change)
    assert AuditEvent.objects.count() == 2


def test_a_leaf_is_numbered_once(write: Callable[..., str]) -> None:
    write()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE approvals_auditleaf SET no = 7")
        with pytest.raises(IntegrityError, match="sealed"):
            cursor.execute("UPDATE approvals_auditleaf SET no = 8")
