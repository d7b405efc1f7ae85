"""Telling agents: one attempt at a time for each, at least once for each post, never inside a transaction.

An attempt is claimed first, as a run is, and recorded afterwards under that claim. Whoever dies in between leaves a
claim that runs out, and the same post, with the same id, is sent again.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction

from checkpoints.errors import Unreadable
from runs.dispatch import ring_post_now
from runs.models import Webhook, WebhookPost
from runs.services.announcing import RUN_READY, announce
from runs.services.locking import lock_run
from runs.services.webhooks import record_webhook
from runs.webhooks.messages import body_of, headers_for
from runs.webhooks.posting import NotPosted, Reply, post

log = logging.getLogger(__name__)

BATCH = 200
GONE = 410
FIRST_DELAY, LONGEST_DELAY, GROWTH = 5.0, 3600.0, 3.0  # seconds between attempts at one post
LONGEST_REST = 60.0  # seconds that one receiver's failures keep its other posts back

# A claim lasts longer than an attempt can take, with its name to resolve.
CLAIM = """
    UPDATE runs_webhook SET claim = claim + 1, claimed_until = fermata_now() + interval '60 s', rung_at = NULL
    WHERE agent_id = %s AND verified_at IS NOT NULL AND gone_at IS NULL
      AND EXISTS (SELECT 1 FROM runs_agent a WHERE a.id = runs_webhook.agent_id AND a.is_active)
      AND (claimed_until IS NULL OR claimed_until <= fermata_now())
      AND (rests_until IS NULL OR rests_until <= fermata_now())
      AND EXISTS (
          SELECT 1 FROM runs_webhook_post p
          WHERE p.agent_id = runs_webhook.agent_id AND p.state = 'pending'
            AND p.next_attempt_at <= (SELECT fermata_now()) AND p.gives_up_at > (SELECT fermata_now())
      )
"""
NEXT = """
    SELECT id FROM runs_webhook_post
    WHERE agent_id = %s AND state = 'pending'
      AND next_attempt_at <= (SELECT fermata_now()) AND gives_up_at > (SELECT fermata_now())
    ORDER BY next_attempt_at, created_at LIMIT 1
"""
UNCLAIM = "UPDATE runs_webhook SET claimed_until = NULL WHERE agent_id = %s AND claim = %s"
ANSWERED = """
    UPDATE runs_webhook
    SET claimed_until = NULL, failing_since = NULL, failures = 0, last_error = '', rests_until = NULL
    WHERE agent_id = %s AND claim = %s
"""
FAILED = """
    UPDATE runs_webhook
    SET claimed_until = NULL, failing_since = COALESCE(failing_since, fermata_now()), failures = failures + 1,
        last_error = %s, rests_until = fermata_now() + %s * interval '1 s',
        gone_at = CASE WHEN %s THEN fermata_now() END
    WHERE agent_id = %s AND claim = %s
"""
DELIVERED = """
    UPDATE runs_webhook_post
    SET state = 'delivered', settled_at = fermata_now(), attempts = attempts + 1, last_error = ''
    WHERE id = %s AND state IN ('pending', 'superseded')
"""
POSTPONED = """
    UPDATE runs_webhook_post
    SET attempts = attempts + 1, last_error = %s,
        next_attempt_at = CASE WHEN state = 'pending' THEN fermata_now() + %s * interval '1 s' ELSE next_attempt_at END
    WHERE id = %s AND state IN ('pending', 'superseded')
"""
# The receiver is back: what failed while it was away is due, after everything that has waited since before.
RECALL = """
    UPDATE runs_webhook_post SET next_attempt_at = fermata_now()
    WHERE agent_id = %s AND state = 'pending' AND attempts > 0 AND next_attempt_at > fermata_now()
"""
GIVE_UP = """
    UPDATE runs_webhook_post SET state = 'given_up', settled_at = fermata_now()
    WHERE id IN (
        SELECT id FROM runs_webhook_post WHERE state = 'pending' AND gives_up_at <= (SELECT fermata_now())
        LIMIT %s FOR UPDATE SKIP LOCKED
    )
    RETURNING run_id
"""
UNHEARD = """
    UPDATE runs_webhook w SET rung_at = fermata_now()
    WHERE w.agent_id IN (
        SELECT h.agent_id FROM runs_webhook h JOIN runs_agent a ON a.id = h.agent_id AND a.is_active
        WHERE h.verified_at IS NOT NULL AND h.gone_at IS NULL
          AND (h.claimed_until IS NULL OR h.claimed_until <= (SELECT fermata_now()))
          AND (h.rests_until IS NULL OR h.rests_until <= (SELECT fermata_now()))
          AND (h.rung_at IS NULL OR h.rung_at < (SELECT fermata_now()) - interval '30 s')
          AND EXISTS (
              SELECT 1 FROM runs_webhook_post p
              WHERE p.agent_id = h.agent_id AND p.state = 'pending'
                AND p.next_attempt_at <= (SELECT fermata_now()) - interval '1 s'
          )
        LIMIT %s FOR UPDATE OF h SKIP LOCKED
    )
    RETURNING w.agent_id
"""
# Taken up after a post, and let go without a word: the process of the agent that had it is gone.
LAPSED = """
    SELECT h.run_id FROM runs_head h JOIN runs_run r ON r.id = h.run_id
    WHERE h.status = 'running' AND h.lease < (SELECT fermata_now()) AND r.resume_mode = 'webhook' LIMIT %s
"""
LET_GO = """
    UPDATE runs_head SET status = 'queued', lease = NULL, updated_at = now()
    WHERE run_id = %s AND status = 'running' AND lease < (SELECT fermata_now())
"""


@dataclass(frozen=True)
class _Attempt:
    webhook: Webhook
    post: WebhookPost


def post_next(*, agent_id: UUID) -> bool:
    """Make one attempt at what has been due longest for the agent. False: nothing is due, or somebody is at it."""
    attempt = _claim(agent_id)
    if attempt is None:
        return False
    try:
        body = body_of(attempt.post)
        reply = post(attempt.webhook.url, body, headers_for(attempt.webhook, attempt.post.id, body))
    except (NotPosted, Unreadable) as error:
        _record_failure(attempt, str(error))
        return True
    if 200 <= reply.status < 300:
        _record_delivery(attempt)
    else:
        _record_failure(attempt, _meaning(reply.status), reply)
    return True


def sweep_posts() -> int:
    """Ring for what is due and was not heard; give up what is too old; tell an agent again whose claim on a run ran
    out. How many were rung for."""
    _tell_again()
    with connection.cursor() as cursor:
        cursor.execute(GIVE_UP, (BATCH,))
        for (run_id,) in cursor.fetchall():
            log.error("the agent of run %s could not be told by webhook; it has to ask", run_id)
        cursor.execute(UNHEARD, (BATCH,))
        found = [row[0] for row in cursor.fetchall()]
    return sum(ring_post_now(agent_id) for agent_id in found)


# --- inside --------------------------------------------------------------------------------------------------------


def _tell_again() -> None:
    with connection.cursor() as cursor:
        cursor.execute(LAPSED, (BATCH,))
        found = [row[0] for row in cursor.fetchall()]
    for run_id in found:
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            run = lock_run(cursor, run_id)
            cursor.execute(LET_GO, (run_id,))
            if cursor.rowcount == 1:
                announce(cursor, run, RUN_READY)


def _claim(agent_id: UUID) -> _Attempt | None:
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(CLAIM, (agent_id,))
        if cursor.rowcount != 1:
            return None
        webhook = Webhook.objects.get(pk=agent_id)
        cursor.execute(NEXT, (agent_id,))
        row = cursor.fetchone()
        if row is None:  # superseded between the two statements
            cursor.execute(UNCLAIM, (agent_id, webhook.claim))
            return None
        return _Attempt(webhook, WebhookPost.objects.get(pk=row[0]))


def _record_delivery(attempt: _Attempt) -> None:
    webhook = attempt.webhook
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(ANSWERED, (webhook.agent_id, webhook.claim))
        if cursor.rowcount != 1:
            return  # it took so long that somebody else is at it
        cursor.execute(DELIVERED, (attempt.post.id,))
        if webhook.failures:
            cursor.execute(RECALL, (webhook.agent_id,))


def _record_failure(attempt: _Attempt, why: str, reply: Reply | None = None) -> None:
    webhook, asked_for = attempt.webhook, (reply.retry_after or 0.0) if reply else 0.0
    is_gone = reply is not None and reply.status == GONE
    rest = max(_delay(webhook.failures, LONGEST_REST), asked_for)
    wait = max(_delay(attempt.post.attempts, LONGEST_DELAY), asked_for)
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(FAILED, (why[:300], rest, is_gone, webhook.agent_id, webhook.claim))
        if cursor.rowcount != 1:
            return
        cursor.execute(POSTPONED, (why[:300], wait, attempt.post.id))
        if is_gone:
            record_webhook(webhook, "gone")
    log.warning("webhook of agent %s: %s (attempt %d)", webhook.agent_id, why, attempt.post.attempts + 1)


def _delay(failures: int, longest: float) -> float:
    """Seconds to wait after so many failures and one more: growing, and never the same for two."""
    whole = min(FIRST_DELAY * GROWTH ** min(failures, 20), longest)
    return whole * random.uniform(0.5, 1.0)  # noqa: S311


def _meaning(status: int) -> str:
    if 300 <= status < 400:
        return f"it answered {status}: redirects are not followed"
    if status == GONE:
        return "it answered 410, gone: nothing is sent there until the webhook is verified again"
    return f"it answered {status}"
