"""Writing events. The hash is computed in the database (migration `audit_triggers`), under the chain's lock."""

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db.models import TextChoices

from runs import strictjson
from runs.hooks import Cursor

SALT_BYTES = 16
APPEND = """
SELECT approvals_audit_append(chain, type, actor, team, salt, body, person)
FROM ({events}) AS event (chain, type, actor, team, salt, body, person)
"""
EVENT = "(%s::text, %s::text, %s::text, %s::bigint, %s::bytea, %s::text, %s::bigint)"


class EventType(TextChoices):
    """Everything that the trail records. A closed list: `append` refuses any other name."""

    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_VIEWED = "approval.viewed"
    APPROVAL_CLAIMED = "approval.claimed"
    APPROVAL_RELEASED = "approval.released"
    APPROVAL_EDITED = "approval.edited"
    APPROVAL_HELD = "approval.held"
    APPROVAL_ESCALATED = "approval.escalated"
    APPROVAL_RECOUNTED = "approval.recounted"
    APPROVAL_SETTLED = "approval.settled"
    APPROVAL_SUPERSEDED = "approval.superseded"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_CANCELLED = "approval.cancelled"
    VOTE_CAST = "vote.cast"
    VOTE_VOIDED = "vote.voided"
    VOTE_UNDONE = "vote.undone"
    ATTEMPT_REFUSED = "attempt.refused"
    GRANT_SPENT = "grant.spent"
    GRANT_OUTCOME = "grant.outcome"
    GRANT_REVOKED = "grant.revoked"
    GRANT_LAPSED = "grant.lapsed"
    GRANT_VOIDED = "grant.voided"
    RUN_STARTED = "run.started"
    RUN_CANCELLED = "run.cancelled"
    RUN_RETRIED = "run.retried"
    RUN_FORKED = "run.forked"
    RUN_FINISHED = "run.finished"
    RUN_BLOCKED = "run.blocked"
    STEP_IN_DOUBT = "step.in_doubt"
    STEP_RESOLVED = "step.resolved"
    POLICY_CHANGED = "policy.changed"
    AGENT_CHANGED = "agent.changed"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    TOKEN_CREATED = "token.created"  # noqa: S105 - a name
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 - a name
    WEBHOOK_CHANGED = "webhook.changed"
    PERSON_CHANGED = "person.changed"
    DELEGATION_CHANGED = "delegation.changed"
    CONTENT_REVEALED = "content.revealed"
    SNAPSHOTS_ERASED = "snapshots.erased"
    AUDIT_EXPORTED = "audit.exported"
    AUDIT_ERASED = "audit.erased"


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event to be written.

    `chain` is `approval:UUID`, `run:UUID`, `team:ID` (configuration) or `site`; `actor` is `person:ID`, `agent:UUID`,
    `worker` or `system`. `body` holds JSON types; these keys have one meaning everywhere: `approval`, `run`, `agent`
    (UUID text), `tool`, `args` and `args_before` (canonical JSON text), `revision`, `outcome`, `message`, `person`
    (an id). `person_id` names the person whose personal data the body holds: erasing the person deletes the body.
    """

    chain: str
    type: str
    actor: str
    team_id: int | None
    body: dict[str, Any]
    person_id: int | None = None


def person_of(actor: str) -> int | None:
    """The id of the person who acted; None for an agent, a worker and the system."""
    kind, _, who = actor.partition(":")
    return int(who) if kind == "person" else None


def append(
    cursor: Cursor,
    *,
    chain: str,
    type: str,
    actor: str,
    team_id: int | None,
    body: dict[str, Any],
    person_id: int | None = None,
) -> None:
    """`append_all` for one `Event` of these fields."""
    append_all(
        cursor,
        [Event(chain=chain, type=type, actor=actor, team_id=team_id, body=body, person_id=person_id)],
    )


def append_to_teams(
    cursor: Cursor,
    teams: Collection[int | None],
    *,
    type: str,
    actor: str,
    body: dict[str, Any],
    person_id: int | None = None,
) -> None:
    """`append_all` for the same event in the chain of each team (ids; None: the site's), in the order in which chains
    are locked."""
    append_all(
        cursor,
        [
            Event(
                chain="site" if team is None else f"team:{team}",
                type=type,
                actor=actor,
                team_id=team,
                body=body,
                person_id=person_id,
            )
            for team in sorted(teams, key=str)
        ],
    )


def append_all(cursor: Cursor, events: Sequence[Event]) -> None:
    """Add each event to the end of its chain, inside the caller's transaction (READ COMMITTED). One round trip.

    Takes the chains' locks until the transaction ends, so call it after every other lock is held (run, approval,
    grant, then chains). A transaction that writes to several chains writes to them in sorted order unless the run's
    lock already keeps others away, and to a few hundred at most: the server's table of locks is finite.
    Raises ValueError for an unknown type, TypeError for a body that is not JSON.
    """
    if not events:
        return
    params: list[object] = []
    for event in events:
        params += (event.chain, EventType(event.type).value, event.actor, event.team_id)
        params += (secrets.token_bytes(SALT_BYTES), strictjson.dumps(event.body), event.person_id)
    cursor.execute(_append(len(events)), params)


def append_from(events: str) -> str:
    """`append_all` for what a query gives, as a statement or a CTE: chain, type, actor, team, salt, body, person.

    As a part of a statement it takes the chains' locks among the statement's others: only under the run's lock.
    """
    return APPEND.format(events=events)


@lru_cache(64)
def _append(count: int) -> str:
    return append_from(f"VALUES {', '.join([EVENT] * count)}")
