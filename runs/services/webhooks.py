"""An agent's webhook: registered, verified by a signed challenge before it is used, changed and removed."""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import transaction

from runs.clock import DatabaseNow, database_now
from runs.dispatch import ring_post
from runs.errors import RunError
from runs.models import Agent, DrawnWebhook, Webhook, WebhookPost
from runs.services.recording import actor_of, record_change
from runs.states import PostState
from runs.webhooks.addresses import AddressRefused, parse, resolve
from runs.webhooks.messages import challenge_body, headers_for, new_secret
from runs.webhooks.posting import NotPosted, post

LONGEST_ANSWER = 64 * 1024  # bytes


@dataclass(frozen=True)
class Registered:
    """`secret` is shown once and kept sealed; None where the webhook keeps the one that it has."""

    webhook: Webhook
    secret: str | None


@dataclass
class WebhookRefused(RunError):
    """The webhook cannot be used like this; `why` says what is wrong."""

    why: str

    def __str__(self) -> str:
        return self.why


def set_webhook(*, agent: Agent, url: str, new_secret_wanted: bool = False, by: User | None = None) -> Registered:
    """Register where the agent is told. It has to be verified, again after each change; posts wait meanwhile.

    A changed address keeps its secret, unless a new one is wanted. Raises `WebhookRefused`.
    """
    drawn, shown = draw_webhook(agent=agent, url=url, new_secret_wanted=new_secret_wanted)
    with transaction.atomic(durable=True):
        drawn.save()
        return Registered(add_webhook(drawn=drawn.pk, by=by), shown)


def draw_webhook(*, agent: Agent, url: str, new_secret_wanted: bool = False) -> tuple[DrawnWebhook, str | None]:
    """What `set_webhook` is to register, not saved yet, and the secret that is shown once. Raises `WebhookRefused`."""
    try:
        resolve(parse(url))
    except AddressRefused as error:
        raise WebhookRefused(str(error)) from error
    except (OSError, UnicodeError) as error:
        raise WebhookRefused("the URL's host cannot be resolved") from error
    shown = sealed = None
    if new_secret_wanted or not Webhook.objects.filter(agent=agent).exists():
        shown, sealed = new_secret(agent.pk)
    return DrawnWebhook(agent=agent, url=url, secret=sealed), shown


def lock_webhook(agent_id: UUID) -> Webhook | None:
    """Keep the agent's webhook as it is until the transaction ends, also where it has none."""
    Agent.objects.select_for_update(no_key=True).get(pk=agent_id)  # two at once would both register the first
    return Webhook.objects.select_for_update(no_key=True).filter(agent=agent_id).first()


@transaction.atomic
def add_webhook(*, drawn: UUID, by: User | None) -> Webhook:
    """Let a drawn webhook work, once it is verified. Raises `WebhookRefused`: it was to keep a secret that is gone."""
    wanted = DrawnWebhook.objects.select_related("agent").get(pk=drawn)
    webhook = lock_webhook(wanted.agent_id)
    if webhook is None and wanted.secret is None:
        raise WebhookRefused(f"{wanted.agent.name} has no webhook any more")
    change = "registered" if webhook is None else "changed"
    webhook = webhook or Webhook(agent=wanted.agent)
    if wanted.secret is not None:
        webhook.secret = wanted.secret
    webhook.url, webhook.verified_at, webhook.set_at = wanted.url, None, database_now()
    webhook.claim, webhook.claimed_until = webhook.claim + 1, None  # an attempt at the old address counts no more
    _forgive(webhook)
    webhook.save()
    wanted.delete()
    record_webhook(webhook, change, by, new_secret=wanted.secret is not None)
    return webhook


def verify_webhook(*, agent: Agent, by: User | None = None) -> Webhook:
    """Ask the receiver to answer a signed challenge; from then on it is used. Raises `WebhookRefused`."""
    webhook = _webhook(agent)
    challenge, message_id = secrets.token_urlsafe(32), uuid4()
    body = challenge_body(message_id, challenge, database_now())
    try:
        reply = post(webhook.url, body, headers_for(webhook, message_id, body), read=LONGEST_ANSWER)
        why = _why_not(reply.status, reply.body, challenge)
    except NotPosted as error:
        why = str(error)
    with transaction.atomic(durable=True):
        current = Webhook.objects.select_for_update(no_key=True).filter(agent=agent).first()
        if current is None or (current.url, bytes(current.secret)) != (webhook.url, bytes(webhook.secret)):
            why = "the webhook was changed meanwhile: verify it again"
        if why:
            record_webhook(webhook, "not verified", by, why=why)
        elif current is not None:
            current.verified_at = database_now()
            _forgive(current)
            current.save()
            WebhookPost.objects.filter(agent=agent, state=PostState.PENDING).update(next_attempt_at=DatabaseNow())
            record_webhook(current, "verified", by)
            ring_post(agent.pk)
    if why or current is None:
        raise WebhookRefused(f"not verified: {why}")
    return current


def remove_webhook(*, agent: Agent, by: User | None = None) -> None:
    """Forget the webhook. Runs that wait for it go on when their agent asks. Raises `WebhookRefused`."""
    webhook = _webhook(agent)
    with transaction.atomic(durable=True):
        deleted, _ = Webhook.objects.filter(agent=agent).delete()
        if deleted:  # and not removed by somebody else meanwhile
            record_webhook(webhook, "removed", by)


def _forgive(webhook: Webhook) -> None:
    """A changed or verified address starts without a past."""
    webhook.gone_at = webhook.failing_since = webhook.rests_until = None
    webhook.failures, webhook.last_error = 0, ""


def _webhook(agent: Agent) -> Webhook:
    webhook = Webhook.objects.select_related("agent").filter(agent=agent).first()
    if webhook is None:
        raise WebhookRefused(f"{agent.name} has no webhook")
    return webhook


def _why_not(status: int, answer: bytes, challenge: str) -> str:
    """What is wrong with an answer to a challenge; empty: nothing."""
    if status != 200:
        return f"the receiver answered {status}, not 200"
    try:
        said = json.loads(answer)
    except ValueError:
        said = None
    echoed = said.get("challenge") if isinstance(said, dict) else None
    if not isinstance(echoed, str) or not hmac.compare_digest(echoed.encode(), challenge.encode()):
        return 'the receiver did not answer {"challenge": …} with what it was sent'
    return ""


def record_webhook(webhook: Webhook, change: str, by: User | None = None, **facts: Any) -> None:
    """Into the audit trail of the agent's team, in the caller's transaction."""
    facts = {"agent": str(webhook.agent_id), "change": change, "url": webhook.shown_url, **facts}
    record_change(teams=[webhook.agent.team_id], type="webhook.changed", actor=actor_of(by), facts=facts)
