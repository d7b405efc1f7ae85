"""How long what runs saved is kept: pruning old checkpoints and old webhook posts, and erasing the content of runs that
have ended.

Each run in a transaction of its own, under its lock: stopping half-way is harmless.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from checkpoints.models import Checkpoint
from checkpoints.services import Pruned, delete_run, prune
from runs.clock import database_now
from runs.engine.draining import is_draining
from runs.errors import WrongState
from runs.hooks import Cursor, hooks
from runs.idempotency import erase_answers
from runs.models import Draft, Gate, OutsideEvent, Run, RunHead, Step, StepEvidence, WebhookPost
from runs.services.locking import lock_run
from runs.states import FINISHED, RunStatus

BATCH = 200
ERASED = b""  # in the place of bodies that must not be NULL

ERASED_TITLE = "Erased run"

ERASE_RUN = """
    UPDATE runs_run
    SET erased_at = COALESCE(erased_at, fermata_now()), title = %s, external_id = '', input = %s, result = NULL,
        error = '', traceback = ''
    WHERE id = %s
    RETURNING agent_id, created_at, finished_at
"""

# A run's newest post stays while the run may have more to tell: its number is what the next one's follows, and pages
# say by it whether the agent was told. A run that has ended tells nothing more, for whoever is told cannot be retried.
PRUNE_POSTS = """
    DELETE FROM runs_webhook_post WHERE id IN (
        SELECT p.id FROM runs_webhook_post p
        WHERE p.state <> 'pending' AND p.settled_at < %s AND p.settled_at >= %s
          AND (
              EXISTS (SELECT 1 FROM runs_webhook_post n WHERE n.run_id = p.run_id AND n.sequence > p.sequence)
              OR EXISTS (SELECT 1 FROM runs_head h WHERE h.run_id = p.run_id AND h.status = ANY(%s))
          )
        ORDER BY p.settled_at LIMIT %s
    )
    RETURNING settled_at
"""


@dataclass(frozen=True)
class Kept:
    """What a night's work deleted: checkpoints, the content of so many runs, and what agents were told by webhook."""

    checkpoints: int
    runs: int
    posts: int


def apply_retention() -> Kept:
    """Prune and erase what the settings no longer keep. Ends early when the process is to stop."""
    now = database_now()
    erased = pruned = 0
    for run_id in _each(_to_erase(now)):
        with suppress(WrongState):  # retried meanwhile
            erased += erase_run(run_id=run_id, actor="system")
    if settings.FERMATA_KEEP_CHECKPOINTS_DAYS is not None:
        before = now - timedelta(days=settings.FERMATA_KEEP_CHECKPOINTS_DAYS)
        keep = settings.FERMATA_KEEP_CHECKPOINTS
        for run_id in _each(_to_prune(keep, before)):
            pruned += prune_run(run_id=run_id, keep=keep, older_than=before).checkpoints
    posts = 0
    if settings.FERMATA_KEEP_POSTS_DAYS is not None:
        posts = prune_posts(settled_before=now - timedelta(days=settings.FERMATA_KEEP_POSTS_DAYS))
    return Kept(checkpoints=pruned, runs=erased, posts=posts)


def prune_run(*, run_id: UUID, keep: int, older_than: datetime) -> Pruned:
    """Delete a run's checkpoints from before `older_than`, but not its `keep` newest, nor any that is referred to.

    What is open for a run, and what it resumes from, is about its newest checkpoint, which always stays.
    Raises RunNotFound.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        lock_run(cursor, run_id)  # a fork reads an old checkpoint under the same lock
        drafts = Draft.objects.filter(run=run_id).values_list("seq", flat=True)
        forks = Run.objects.filter(parent=run_id).values_list("parent_seq", flat=True)
        protect = {*drafts, *(seq for seq in forks if seq is not None)}
        return prune(run_id=run_id, keep=keep, older_than=older_than, protect=protect)


def prune_posts(*, settled_before: datetime) -> int:
    """Delete the webhook posts that were delivered, superseded or given up before then, in batches, until this process
    is to stop; how many. None that is still to be delivered, and never the number that a run's next one follows."""
    deleted, since = 0, datetime.min.replace(tzinfo=UTC)
    with connection.cursor() as cursor:
        while not is_draining():
            cursor.execute(PRUNE_POSTS, (settled_before, since, sorted(FINISHED), BATCH))
            settled = [row[0] for row in cursor.fetchall()]
            deleted += len(settled)
            if len(settled) < BATCH:
                break
            since = max(settled)  # what stays before that is not looked at again
    return deleted


def erase_run(*, run_id: UUID, actor: str, approvals: bool = False) -> bool:
    """Erase what a run that has ended was given, saved, did, returned and was called, and what the audit trail says of
    it in words; that it was, stays, and the erasure is put on record. False: all of it was erased before.

    Its forks are runs of their own. What was asked and decided stays, unless its `approvals` are to be erased as well.
    Raises RunNotFound; WrongState when it has not ended.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        if run.status not in FINISHED:
            raise WrongState(run_id, run.status, "erased before it has ended")
        is_first = Run.objects.filter(pk=run_id, erased_at__isnull=True).exists()
        facts = _erase_content(cursor, run_id)
        if is_first:
            hooks().record(
                cursor, run_id=run_id, team_id=run.team_id, type="snapshots.erased", actor=actor, body={"erased": facts}
            )
        said = hooks().erase(cursor, run_id=run_id, actor=actor, approvals=approvals)
    return is_first or said > 0


def _erase_content(cursor: Cursor, run_id: UUID) -> dict[str, int]:
    """What was erased, for the record. Again: nothing."""
    facts = {
        "checkpoints": Checkpoint.objects.filter(run_id=run_id).count(),
        "steps": Step.objects.filter(run=run_id).exclude(outcome=None).update(outcome=ERASED),
        "gates": Gate.objects.filter(run=run_id).exclude(answer=None).update(answer=ERASED),
        "events": OutsideEvent.objects.filter(run=run_id).update(payload=ERASED),
    }
    delete_run(run_id=run_id)
    Draft.objects.filter(run=run_id).delete()
    StepEvidence.objects.filter(run=run_id).delete()
    WebhookPost.objects.filter(run=run_id).update(last_error="")
    RunHead.objects.filter(run=run_id).update(detail="")
    cursor.execute(ERASE_RUN, (ERASED_TITLE, ERASED, run_id))
    agent_id, since, until = cursor.fetchone()
    erase_answers(cursor, agent_id=agent_id, run_id=run_id, since=since, until=until)
    return facts


def _to_erase(now: datetime) -> QuerySet[RunHead]:
    """Ended long enough ago. A failed run can still be retried, so it has a term of its own."""
    found = RunHead.objects.none()
    for statuses, days in (
        (FINISHED - {RunStatus.FAILED}, settings.FERMATA_KEEP_FINISHED_RUNS_DAYS),
        ({RunStatus.FAILED}, settings.FERMATA_KEEP_FAILED_RUNS_DAYS),
    ):
        if days is not None:
            before = now - timedelta(days=days)
            found |= RunHead.objects.filter(
                status__in=statuses, run__finished_at__lt=before, run__erased_at__isnull=True
            )
    return found


def _to_prune(keep: int, before: datetime) -> QuerySet[RunHead]:
    old = Checkpoint.objects.filter(run_id=OuterRef("run_id"), seq__lte=OuterRef("head_seq") - keep, at__lt=before)
    return RunHead.objects.filter(Exists(old), head_seq__gte=keep)


def _each(found: QuerySet[RunHead]) -> Iterator[UUID]:
    """The runs found, in batches, until this process is to stop."""
    last = UUID(int=0)
    while batch := list(found.filter(run_id__gt=last).order_by("run_id").values_list("run_id", flat=True)[:BATCH]):
        for last in batch:
            if is_draining():
                return
            yield last
