"""Erasing what people were asked about a run that has ended, and what they decided: that they did, and how, stays."""

from uuid import UUID

from approvals.audit.erasing import erase_words
from approvals.models import Approval
from runs.hooks import Cursor

NOTHING = '{"erased":true}'  # in the place of arguments: no action is about these
TITLE = "Erased"

# The database lets exactly this be done, and only to a run that is erased (migration `erasing`). What has come since
# the last time, a grant's outcome for one, is erased by the next.
ERASE = (
    """
    UPDATE approvals_approval SET title = %(title)s, description = '', args = %(args)s, args_schema = '{}'
    WHERE id = ANY(%(ids)s) AND (title, description, args, args_schema) <> (%(title)s, '', %(args)s, '{}')
    RETURNING id
    """,
    """
    UPDATE approvals_revision SET args = %(args)s, diff = CASE WHEN diff = '' THEN '' ELSE '[]' END
    WHERE approval_id = ANY(%(ids)s) AND (args <> %(args)s OR diff NOT IN ('', '[]')) RETURNING approval_id
    """,
    "UPDATE approvals_vote SET message = '' WHERE approval_id = ANY(%(ids)s) AND message <> '' RETURNING approval_id",
    """
    UPDATE approvals_decision SET args = %(args)s, message = ''
    WHERE approval_id = ANY(%(ids)s) AND (args, message) <> (%(args)s, '') RETURNING approval_id
    """,
    """
    UPDATE approvals_grant SET args = %(args)s, outcome = ''
    WHERE approval_id = ANY(%(ids)s) AND (args, outcome) <> (%(args)s, '') RETURNING approval_id
    """,
)


def erase_of_run(cursor: Cursor, *, run_id: UUID, actor: str, approvals: bool) -> int:
    """Erase what the trail says about a run in words and, with its `approvals`, what was asked and decided; how many
    events and approvals that were. In the transaction that erases the run. Again: 0."""
    asked = [*Approval.objects.filter(run=run_id).order_by("pk").values_list("pk", flat=True)] if approvals else []
    erased: set[UUID] = set()
    for statement in ERASE if asked else ():
        cursor.execute(statement, {"ids": asked, "args": NOTHING, "title": TITLE})
        erased.update(approval for (approval,) in cursor.fetchall())
    return len(erased) + erase_words(run_id=run_id, approvals=asked, by=actor)
