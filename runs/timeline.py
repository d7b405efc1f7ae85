"""What happened to a run, newest first: one list out of its checkpoints, steps, gates, events and webhook posts."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from django.db.models import QuerySet

from checkpoints.models import Checkpoint
from runs.models import Gate, OutsideEvent, Run, Step, WebhookPost
from runs.states import PostState


@dataclass(frozen=True)
class Entry:
    """`what` is a short name, unique among entries of the same kind in one turn; `facts` are JSON values."""

    at: datetime
    kind: str
    what: str
    facts: dict[str, Any]


def timeline(run: Run, *, before: datetime | None, limit: int) -> tuple[list[Entry], datetime | None]:
    """At most `limit` entries older than `before`, and from when to go on (None: there is no more).

    What happened at the same instant stays on one page.
    """
    found = sorted(_entries(run, before, limit + 1), key=lambda entry: entry.at, reverse=True)
    if len(found) <= limit:
        return found, None
    following = found[limit].at
    kept = list(takewhile(lambda entry: entry.at > following, found)) or found[:limit]
    return kept, kept[-1].at


def _entries(run: Run, before: datetime | None, limit: int) -> Iterator[Entry]:
    for checkpoint in _newest(Checkpoint.objects.filter(run_id=run.pk).defer("manifest", "body"), "at", before, limit):
        facts = {"phase": checkpoint.phase, "turn": checkpoint.turn, "size": checkpoint.size}
        yield Entry(checkpoint.at, "checkpoint", f"{checkpoint.seq} ({checkpoint.reason})", facts)
    for step in _newest(Step.objects.filter(run=run).defer("outcome"), "started_at", before, limit):
        yield Entry(step.started_at, "step", step.key, _step(step))
    for gate in _newest(Gate.objects.filter(run=run).defer("answer"), "opened_at", before, limit):
        facts = {"phase": gate.phase, "turn": gate.turn, "kind": gate.kind, "generation": gate.generation}
        yield Entry(gate.opened_at, "gate", gate.key, {**facts, "answered_at": gate.answered_at})
    for event in _newest(OutsideEvent.objects.filter(run=run).defer("payload"), "at", before, limit):
        yield Entry(event.at, "event", event.name, {})
    for post in _newest(WebhookPost.objects.filter(run=run), "created_at", before, limit):
        yield Entry(post.created_at, "webhook", f"{post.sequence} ({post.type})", _post(post))
    for at, what in ((run.created_at, "created"), (run.finished_at, run.head.status)):
        if at is not None and (before is None or at < before):
            yield Entry(at, "run", what, {})


def _newest(rows: QuerySet[Any], field: str, before: datetime | None, limit: int) -> QuerySet[Any]:
    if before is not None:
        rows = rows.filter(**{f"{field}__lt": before})
    return rows.order_by(f"-{field}")[:limit]


def _step(step: Step) -> dict[str, Any]:
    return {
        "phase": step.phase,
        "turn": step.turn,
        "tool": step.tool,
        "effect": step.effect,
        "state": step.state,
        "finished_at": step.finished_at,
        "build": step.build,
    }


def _post(post: WebhookPost) -> dict[str, Any]:
    return {
        "id": str(post.id),
        "state": post.state,
        "attempts": post.attempts,
        "last_error": post.last_error,
        "next_attempt_at": post.next_attempt_at if post.state == PostState.PENDING else None,
        "settled_at": post.settled_at,
    }
