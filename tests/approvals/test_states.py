"""The tables of moves in Python and in the database are the same, and the database holds what else it promises."""

import contextlib
import itertools

import pytest
from django.db import IntegrityError, connection, transaction

from approvals.models import Approval, Decision, Grant, PolicyVersion, Revision
from approvals.services.conclusion import conclude
from approvals.states import GRANT_TRANSITIONS, SETTLED, TRANSITIONS, ApprovalStatus
from tests.approvals.scenes import cast, opened

pytestmark = pytest.mark.django_db


def allowed_by(function: str, states) -> set[tuple[str, str]]:
    """The moves that a trigger function of the migrations lets through."""
    allowed = set()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE moving (status text)")
        cursor.execute(f"CREATE TRIGGER t BEFORE UPDATE ON moving FOR EACH ROW EXECUTE FUNCTION {function}()")
        for old, new in itertools.permutations(states, 2):
            cursor.execute("TRUNCATE moving")
            cursor.execute("INSERT INTO moving VALUES (%s)", (old,))
            with contextlib.suppress(IntegrityError), transaction.atomic():
                cursor.execute("UPDATE moving SET status = %s", (new,))
                allowed.add((old, new))
        cursor.execute("DROP TABLE moving")
    return allowed


@pytest.mark.parametrize(
    ("function", "table"),
    [
        ("approvals_check_approval_transition", TRANSITIONS),
        ("approvals_check_grant_transition", GRANT_TRANSITIONS),
    ],
)
def test_the_database_moves_as_the_table_says(function, table):
    assert allowed_by(function, table) == {(old, new) for old, nexts in table.items() for new in nexts}


def commit(sql: str, **params) -> None:
    """Run the statement and everything that a commit would check."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


SETTLE = "UPDATE approvals_approval SET status = %(outcome)s, settled_at = now() WHERE id = %(id)s"
DECIDE = f"""
WITH d AS (
    INSERT INTO approvals_decision (approval_id, outcome, revision, action, args, message, policies)
    VALUES (%(id)s, %(outcome)s, 1, '', '', '', '[]')
) {SETTLE}
"""


@pytest.mark.parametrize(
    ("sql", "outcome", "constraint"),
    [
        (SETTLE, "approved", "approvals_approval_has_its_decision"),
        (DECIDE, "approved", "approvals_approval_has_its_grant"),
        (DECIDE, "rejected", "approvals_approval_has_its_event"),
    ],
)
def test_nothing_is_settled_without_its_decision_its_grant_and_its_event(agent, sql, outcome, constraint):
    approval = opened(agent)

    with pytest.raises(IntegrityError) as refused:
        commit(sql, id=approval.pk, outcome=outcome)

    assert refused.value.__cause__.diag.constraint_name == constraint


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (Approval, {"tool": "other"}),
        (Approval, {"description": "other"}),
        (Revision, {"args": "{}"}),
        (Decision, {"outcome": "rejected"}),
        (Grant, {"args": "{}"}),
        (PolicyVersion, {"quorum": '[{"count":0,"group":null}]'}),
    ],
)
def test_what_is_written_stays(agent, reviewer, model, change):
    cast(opened(agent), reviewer)

    with pytest.raises(IntegrityError, match="never change"), transaction.atomic():
        model.objects.update(**change)


def test_concluding_a_settled_approval_finds_nothing(agent, reviewer):
    approval = cast(opened(agent), reviewer)

    for outcome in sorted(SETTLED):
        with connection.cursor() as cursor:
            assert conclude(cursor, approval_id=approval.pk, outcome=ApprovalStatus(outcome), actor="system") is None
    assert Decision.objects.get().outcome == ApprovalStatus.APPROVED
