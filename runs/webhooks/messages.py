"""What is posted, and its signature: Standard Webhooks (standardwebhooks.com). Bodies carry ids and numbers only."""

from __future__ import annotations

import json
import secrets
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from standardwebhooks.webhooks import Webhook as Signer

from runs.bodies import seal, unseal, webhook_place
from runs.models import Webhook, WebhookPost

SECRET_BYTES = 32


def new_secret(agent_id: UUID) -> tuple[str, bytes]:
    """A secret as a receiver is given it, once, and as it is kept."""
    secret = secrets.token_bytes(SECRET_BYTES)
    return f"whsec_{b64encode(secret).decode()}", seal(secret, webhook_place(agent_id))


def body_of(post: WebhookPost) -> bytes:
    """The same at every attempt. What it leads to, the receiver asks the API for."""
    return _body(
        post.id,
        post.type,
        post.created_at,
        {"run": str(post.run_id), "sequence": post.sequence, "checkpoint": post.checkpoint},
    )


def challenge_body(message_id: UUID, challenge: str, at: datetime) -> bytes:
    """What a receiver has to answer with the same `challenge`."""
    return _body(message_id, "webhook.verification", at, {"challenge": challenge})


def headers_for(webhook: Webhook, message_id: UUID, body: bytes) -> dict[str, str]:
    """The signature of this attempt, now. Raises Unreadable where the secret cannot be opened."""
    secret = unseal(webhook.secret, webhook_place(webhook.agent_id), what=f"the secret of {webhook}")
    at = datetime.now(UTC)  # the receiver compares it with its own clock, so this is no time of the database's
    return {
        "Content-Type": "application/json",
        "webhook-id": str(message_id),
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Signer(secret).sign(str(message_id), at, body.decode()),
    }


def _body(message_id: UUID, kind: str, at: datetime, data: dict[str, Any]) -> bytes:
    timestamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps({"id": str(message_id), "type": kind, "timestamp": timestamp, "data": data}).encode()
