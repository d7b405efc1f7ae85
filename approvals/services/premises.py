"""What an ask is prepared by, before its transaction begins, and whether it is still so when the ask is opened.

Whoever changes it (puts a policy in force, rejects something) has a lock alone from then until they commit, and whoever
opens shares it until they commit. So either the opener comes first, and the change finds what was opened; or the opener
sees the change, and prepares again. Nobody holds a lock while policies are read. See docs/decisions/037.
"""

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db.models import Max

from approvals.models import PolicyVersion
from runs.engine.gates import PrepareAgain
from runs.hooks import Cursor

# A host that is cut off in the middle of opening keeps its locks until the server notices. Nobody waits so long.
ALONE = "SELECT set_config('lock_timeout', '5s', true), pg_advisory_xact_lock(hashtextextended(%s, 0))"
SHARED = """
SELECT set_config('lock_timeout', '5s', true),
    pg_advisory_xact_lock_shared(hashtextextended(%s, 0)),
    pg_advisory_xact_lock_shared(hashtextextended(%s, 0))
"""
# A statement of its own, so that it sees what was committed while the locks were waited for. People's rejections only:
# what a policy denies is rejected in the transaction that opens it. Only the last hour, for nothing takes so long to
# commit; and never more than what counts, or what is prepared again would differ again.
STILL_SO = """
SELECT
    coalesce(
        (
            SELECT max(v.id) FROM approvals_policyversion v JOIN approvals_policy p ON p.id = v.policy_id
            WHERE p.team_id = %(team)s
        ), 0
    ) = %(rules)s
    AND NOT EXISTS (
        SELECT 1 FROM approvals_approval a
        JOIN unnest(%(tools)s::text[], %(args)s::text[]) AS asked (tool, args) USING (tool, args)
        JOIN approvals_decision d ON d.approval_id = a.id AND d.decided_by_id IS NOT NULL
        WHERE a.agent_id = %(agent)s AND a.status = 'rejected'
          AND a.settled_at > fermata_now() - least(make_interval(days => %(days)s), interval '1 hour')
    )
"""


def newest_rules(team_id: int) -> int:
    """What tells the policies of a team apart from what they were before; read it before them."""
    return PolicyVersion.objects.filter(policy__team=team_id).aggregate(newest=Max("pk"))["newest"] or 0


def rules_change(cursor: Cursor, team_id: int) -> None:
    """From now until the transaction ends no ask of the team is opened. Call it before policies are changed."""
    cursor.execute(ALONE, (_rules(team_id),))


def rejection_comes(cursor: Cursor, agent_id: UUID) -> None:
    """From now until the transaction ends no ask of the agent is opened. Call it before a person's rejection stands."""
    cursor.execute(ALONE, (_rejections(agent_id),))


def check_still_so(
    cursor: Cursor, *, team_id: int, agent_id: UUID, rules: int, not_rejected: Sequence[tuple[str, str]]
) -> None:
    """Keep what an ask was prepared by as it is until the transaction ends. Raises `PrepareAgain` where it has changed
    since the policies were at `rules`, and none of `not_rejected` (tools and arguments) had been rejected lately."""
    cursor.execute(SHARED, (_rules(team_id), _rejections(agent_id)))
    tools, args = [tool for tool, _ in not_rejected], [args for _, args in not_rejected]
    days = settings.FERMATA_REJECTION_MEMORY_DAYS
    facts = {"team": team_id, "rules": rules, "agent": agent_id, "tools": tools, "args": args, "days": days}
    cursor.execute(STILL_SO, facts)
    if not cursor.fetchone()[0]:
        raise PrepareAgain


def _rules(team_id: int) -> str:
    return f"approvals.rules:{team_id}"


def _rejections(agent_id: UUID) -> str:
    return f"approvals.rejections:{agent_id}"
