"""An agent's webhook: how it does, in a word or two, and what it has still to say."""

from dataclasses import dataclass
from datetime import datetime

from approvals.presentation.chips import Chip
from runs.models import Agent, Webhook, WebhookPost
from runs.states import PostState, WebhookStanding

CHIPS = {
    WebhookStanding.NOT_VERIFIED: Chip("Not verified", "warning", "tone-hold"),
    WebhookStanding.VERIFIED: Chip("Verified", "approved", "tone-good"),
    WebhookStanding.FAILING: Chip("Failing", "failed", "tone-bad"),
    WebhookStanding.GONE: Chip("Gone", "failed", "tone-bad"),
}


@dataclass(frozen=True, slots=True)
class WebhookLine:
    """`since` is None while it is not verified; `was_verified_at` is when it last was, whatever became of it."""

    address: str
    chip: Chip
    since: datetime | None
    was_verified_at: datetime | None
    last_error: str


@dataclass(frozen=True, slots=True)
class Untold:
    """How many posts wait, and how many were given up."""

    pending: int
    given_up: int


def webhook_line(agent: Agent) -> WebhookLine | None:
    """None: it has none. Reads nothing where the agent was read with its webhook."""
    webhook: Webhook | None = getattr(agent, "webhook", None)
    if webhook is None:
        return None
    standing, since = webhook.standing
    return WebhookLine(webhook.shown_url, CHIPS[standing], since, webhook.verified_at, webhook.last_error)


def untold(agent: Agent) -> Untold:
    posts = WebhookPost.objects.filter(agent=agent)
    return Untold(*(posts.filter(state=state).count() for state in (PostState.PENDING, PostState.GIVEN_UP)))
