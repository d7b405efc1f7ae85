"""The two digests that bind a decision: `action` is exactly what would run, `review` everything that was shown.

Each is SHA-256 over a domain, a NUL and the canonical JSON of named fields, in lower-case hex.
"""

import hashlib
from uuid import UUID

from django.conf import settings

from approvals import canonical

ACTION_DOMAIN = b"fermata action 1\0"
REVIEW_DOMAIN = b"fermata review 1\0"


def action_digest(
    *,
    team_id: int,
    agent_id: UUID,
    run_id: UUID,
    turn: int,
    key: str,
    revision: int,
    tool: str,
    tool_version: str,
    target: str,
    args: str,
) -> str:
    """The digest of one exact action in this deployment. `args` is canonical JSON text."""
    return _digest(
        ACTION_DOMAIN,
        {
            "deployment": settings.DEPLOYMENT,
            "team": team_id,
            "agent": str(agent_id),
            "run": str(run_id),
            "turn": turn,
            "key": key,
            "revision": revision,
            "tool": tool,
            "tool_version": tool_version,
            "target": target,
            "args": args,
        },
    )


def review_digest(*, action: str, requirements: str, snapshot_digest: str, title: str, description: str) -> str:
    """The digest of what the page showed. `requirements` is canonical JSON text."""
    return _digest(
        REVIEW_DOMAIN,
        {
            "action": action,
            "requirements": requirements,
            "snapshot": snapshot_digest,
            "title": title,
            "description": description,
        },
    )


def _digest(domain: bytes, fields: dict[str, str | int]) -> str:
    return hashlib.sha256(domain + canonical.dumps(fields).encode("ascii")).hexdigest()
