"""Starting runs: hosted ones, and external ones that arrive with a snapshot and something to decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction

from checkpoints import codec
from checkpoints.codec.encoding import packed
from checkpoints.models import Reason
from checkpoints.store import Head, Prepared, encode_item, insert, load, prepare
from checkpoints.store.digests import history_digest
from runs.bodies import input_place, seal
from runs.dispatch import ring
from runs.engine.gates import OPEN_GATE, Opened, Opener, Question
from runs.engine.workflows import Workflow, find_workflow, known_workflows
from runs.errors import (
    InvalidInput,
    RunNotFound,
    StaleCheckpoint,
    UnknownPhase,
    UnknownWorkflow,
    WrongState,
)
from runs.hooks import Cursor, hooks
from runs.models import Agent, AgentKey, Run, RunHead, Webhook
from runs.services.answering import wake_if_answered
from runs.services.locking import lock_run
from runs.services.posted import Clean, called, cleaner, encoded, refusing, titled
from runs.states import OUTSIDE, GateKind, ResumeMode, RunKind, RunStatus, SuspendReason

MOVE_HEAD = """
    UPDATE runs_head
    SET status = 'suspended', reason = 'approval', detail = %s, head_seq = %s, turn = %s, phase = %s, workflow = %s,
        schema = %s, lease = NULL, epoch = epoch + 1, updated_at = now()
    WHERE run_id = %s
"""


@dataclass(frozen=True)
class PostedSnapshot:
    """What an external agent saved of itself: JSON values only, never the codec's tagged types."""

    state: dict[str, Any]
    history: Sequence[Any]
    position: Any
    pending: Any
    schema_name: str
    schema: int


@dataclass(frozen=True)
class Resume:
    """How an external run goes on. `workflow` and `phase` name where, for `ResumeMode.WORKFLOW`."""

    mode: ResumeMode
    workflow: str = ""
    phase: str = ""


def start_run(
    *,
    agent: Agent,
    workflow: str,
    input: Any,
    title: str = "",
    key: AgentKey | None = None,
    requesters: Sequence[User] = (),
) -> Run:
    """Accept a hosted run: its first checkpoint and its place in the queue commit together.

    Works inside the caller's transaction, if there is one. Raises UnknownWorkflow, InvalidInput, SnapshotTooLarge.
    """
    title = titled(agent, title, "title")
    flow = _workflow(workflow)
    if "start" not in flow.phases:
        raise UnknownPhase(workflow, "start", tuple(sorted(flow.entries)))
    body = encoded(cleaner(agent)(input), "input")
    run_id = uuid4()
    with transaction.atomic():
        run = Run.objects.create(
            id=run_id,
            team_id=agent.team_id,
            agent=agent,
            key=key,
            kind=RunKind.HOSTED,
            resume_mode=ResumeMode.HOSTED,
            title=title or f"{workflow} for {agent.name}",
            input=seal(body, input_place(run_id)),
        )
        run.requesters.set(requesters)
        first = _first_checkpoint(run.id, flow)
        RunHead.objects.create(
            run=run,
            status=RunStatus.QUEUED,
            workflow=workflow,
            schema=flow.schema,
            phase="start",
            head_seq=first.head.seq,
            rings=1,
        )
        with connection.cursor() as cursor:
            insert(cursor, first)
            hooks().record(
                cursor,
                run_id=run.id,
                team_id=agent.team_id,
                type="run.started",
                actor=f"agent:{agent.id}",
                body={"workflow": workflow, "title": run.title},
            )
        ring(run.id)
    return run


def park_external(
    *,
    agent: Agent,
    key: AgentKey | None,
    external_id: str,
    title: str,
    snapshot: PostedSnapshot,
    resume: Resume,
    questions: Sequence[Question],
    opener: Opener,
    run_id: UUID,
    if_match: int | None = None,
) -> Run:
    """Store an external agent's snapshot and park its run at `questions`, in the caller's transaction.

    `opener`, already prepared, opens the approvals with the cursor of that transaction. Without `if_match` this starts
    the run `run_id`; with it, it continues that run, whose newest checkpoint must be `if_match`. Raises
    UnknownWorkflow, UnknownPhase, InvalidInput, SnapshotTooLarge, RunNotFound, StaleCheckpoint, WrongState.
    """
    if resume.mode == ResumeMode.WORKFLOW:
        flow = _workflow(resume.workflow)
        if resume.phase not in flow.entries:
            raise UnknownPhase(resume.workflow, resume.phase, tuple(sorted(flow.entries)))
    if resume.mode == ResumeMode.WEBHOOK:
        _check_webhook(agent)
    with transaction.atomic(), connection.cursor() as cursor:
        if if_match is None:
            run, head, turn = _new_external(run_id, agent, key, external_id, title, resume), None, 0
        else:
            run, head, turn = _continued(cursor, agent, run_id, if_match, resume)
        prepared = _external_checkpoint(run.id, head, turn, snapshot, resume, cleaner(agent))
        insert(cursor, prepared)
        detail = f"waits at {', '.join(question.key for question in questions)}"[:500]
        cursor.execute(
            MOVE_HEAD,
            (detail, prepared.head.seq, turn, resume.phase, resume.workflow, snapshot.schema, run.id),
        )
        for ordinal, question in enumerate(questions):
            place = (run.id, turn, question.key, ordinal, resume.phase)
            cursor.execute(OPEN_GATE, (*place, GateKind.APPROVAL.value, question.digest, None))
        if if_match is None:
            hooks().record(
                cursor,
                run_id=run.id,
                team_id=agent.team_id,
                type="run.started",
                actor=f"agent:{agent.id}",
                body={"external_id": external_id, "title": run.title},
            )
        opener.open(cursor, [Opened(question.key, 0) for question in questions], prepared.digest)
        wake_if_answered(cursor, lock_run(cursor, run.id))
    return run


# --- inside --------------------------------------------------------------------------------------------------------


def _workflow(name: str) -> Workflow:
    flow = find_workflow(name)
    if flow is None:
        raise UnknownWorkflow(name, known_workflows())
    return flow


def _check_webhook(agent: Agent) -> None:
    if not Webhook.objects.filter(agent=agent, verified_at__isnull=False).exists():
        raise InvalidInput(
            "resume.mode", "this agent has no verified webhook: its team's administrators register one, on its page"
        )


def _first_checkpoint(run_id: UUID, flow: Workflow) -> Prepared:
    return prepare(
        run_id=run_id,
        head=None,
        seq=0,
        epoch=0,
        workflow=flow.name,
        schema=flow.schema,
        phase="start",
        turn=0,
        reason=Reason.START.value,
        state={},
        new_history=(),
        position=None,
        pending=[],
        limit=settings.FERMATA_SNAPSHOT_LIMIT,
    )


def _new_external(
    run_id: UUID, agent: Agent, key: AgentKey | None, external_id: str, title: str, resume: Resume
) -> Run:
    run = Run.objects.create(
        id=run_id,
        team_id=agent.team_id,
        agent=agent,
        key=key,
        kind=RunKind.EXTERNAL,
        resume_mode=resume.mode,
        external_id=called(external_id, "run.external_id"),
        title=titled(agent, title, "run.title"),
        input=seal(codec.encode(None, path="input"), input_place(run_id)),
    )
    RunHead.objects.create(run=run, status=RunStatus.SUSPENDED, reason=SuspendReason.APPROVAL)
    return run


def _continued(cursor: Cursor, agent: Agent, run_id: UUID, if_match: int, resume: Resume) -> tuple[Run, Head, int]:
    """An external run's next suspension: only its owner, only from its newest checkpoint, only when it is awake."""
    run = Run.objects.filter(id=run_id, agent=agent, kind=RunKind.EXTERNAL).first()
    if run is None:
        raise RunNotFound(run_id)
    locked = lock_run(cursor, run_id)
    if locked.head_seq != if_match:
        raise StaleCheckpoint(run_id, locked.head_seq, if_match)
    if locked.status not in (RunStatus.QUEUED, RunStatus.RUNNING) or run.resume_mode not in OUTSIDE:
        raise WrongState(run_id, locked.status, "suspended again")
    if resume.mode == ResumeMode.WEBHOOK != run.resume_mode:
        raise InvalidInput("resume.mode", f"this run's is {run.resume_mode}, as its first suspension said")
    _, head = load(cursor, run_id=run_id, history=False)
    return run, head, locked.turn + 1


def _external_checkpoint(
    run_id: UUID, head: Head | None, turn: int, snapshot: PostedSnapshot, resume: Resume, clean: Clean
) -> Prepared:
    with refusing("snapshot."):
        return prepare(
            run_id=run_id,
            head=head,
            seq=head.seq + 1 if head else 0,
            epoch=0,
            workflow=resume.workflow or snapshot.schema_name,
            schema=snapshot.schema,
            phase=resume.phase,
            turn=turn,
            reason=Reason.EXTERNAL.value,
            state=clean(snapshot.state),
            new_history=_appended(snapshot.history, head or Head.before_first(), clean),
            position=clean(snapshot.position),
            pending=clean(snapshot.pending),
            limit=settings.FERMATA_SNAPSHOT_LIMIT,
        )


def _appended(history: Sequence[Any], head: Head, clean: Clean) -> list[bytes]:
    """A history is append-only: what was stored before, cleaned or not, must be the beginning of what is posted now."""
    known = head.history_length
    before = history[:known]
    if not any(_digest(items) == head.history_digest for items in (before, clean(before))):
        raise InvalidInput("snapshot.history", f"its first {known} items must be those of the last checkpoint")
    return [encode_item(clean(item), index) for index, item in enumerate(history[known:], known)]


def _digest(items: Sequence[Any]) -> bytes:
    return history_digest(bytes(32), [packed(item, f"history[{index}]") for index, item in enumerate(items)])
