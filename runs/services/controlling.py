"""What operators and owners do to a run: cancel it, retry it from its last checkpoint, fork it from any."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import connection, transaction

from checkpoints.errors import Unreadable
from checkpoints.services import copy_for_fork
from runs.bodies import input_place, outcome_place, seal, unseal
from runs.dispatch import ring
from runs.engine.tools import may_repeat
from runs.engine.workflows import find_workflow, known_workflows
from runs.errors import NotAcknowledged, RunNotFound, UnknownWorkflow, WrongState
from runs.hooks import Cursor, hooks
from runs.models import Run, RunHead, Step
from runs.services.announcing import RUN_CANCELLED, announce
from runs.services.locking import LockedRun, lock_run
from runs.states import FINISHED, OUTSIDE, ResumeMode, RunKind, RunStatus, StepState

END = """
    UPDATE runs_head
    SET status = 'cancelled', reason = '', detail = '', lease = NULL, wake_at = NULL, epoch = epoch + 1,
        draining = false, updated_at = now()
    WHERE run_id = %s
"""
END_RUN = "UPDATE runs_run SET finished_at = fermata_now(), error = %s WHERE id = %s"
REQUEUE = """
    UPDATE runs_head
    SET status = 'queued', reason = '', detail = '', lease = NULL, wake_at = NULL, crashes = 0, failures = 0,
        rung_at = fermata_now(), rings = 1, updated_at = now()
    WHERE run_id = %s
"""
FORGET_END = """
    UPDATE runs_run SET finished_at = NULL, error_type = '', error = '', traceback = '' WHERE id = %s
"""
READ_FAILURES = "SELECT key, outcome FROM runs_step WHERE run_id = %s AND turn = %s AND state = 'failed'"
FORGET_FAILURES = "DELETE FROM runs_step WHERE run_id = %s AND turn = %s AND key = ANY(%s)"


def cancel_run(*, run_id: UUID, actor: str, reason: str = "") -> bool:
    """End the run now, whatever it is doing; a worker that has it loses it and writes nothing more.

    Its open approvals are closed with it. False: it was cancelled before. Raises RunNotFound; WrongState when it ended
    otherwise.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        if run.status == RunStatus.CANCELLED:
            return False
        if run.status in FINISHED:
            raise WrongState(run_id, run.status, "cancelled")
        end_cancelled(cursor, run, actor=actor, reason=reason)
    return True


def end_cancelled(cursor: Cursor, run: LockedRun, *, actor: str, reason: str) -> None:
    """The same in the caller's transaction, for an unfinished run that it has locked."""
    cursor.execute(END, (run.run_id,))
    cursor.execute(END_RUN, (reason, run.run_id))
    hooks().run_ended(
        cursor,
        run_id=run.run_id,
        team_id=run.team_id,
        reason=f"the run was cancelled{f': {reason}' if reason else ''}",
        type="run.cancelled",
        actor=actor,
        body={"reason": reason},
    )
    if run.resume_mode == ResumeMode.WEBHOOK:
        announce(cursor, run, RUN_CANCELLED)


def retry_run(*, run_id: UUID, actor: str, person: User | None = None) -> None:
    """Queue a failed or blocked run again, from its last checkpoint. What it recorded stays recorded.

    Known failures of the phase are forgotten, so that the phase tries those calls again, unless a call is known to have
    been made. Whoever retries becomes a requester. Raises RunNotFound, WrongState.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        run = lock_run(cursor, run_id)
        if run.status not in (RunStatus.FAILED, RunStatus.BLOCKED):
            raise WrongState(run_id, run.status, "retried")
        if run.resume_mode in OUTSIDE:
            raise WrongState(run_id, run.status, "retried here: its code lives elsewhere")
        if Run.objects.filter(pk=run_id, erased_at__isnull=False).exists():
            raise WrongState(run_id, run.status, "retried: its content was erased")
        cursor.execute(READ_FAILURES, (run_id, run.turn))
        repeated = [key for key, body in cursor.fetchall() if _may_repeat(run, key, body)]
        cursor.execute(FORGET_FAILURES, (run_id, run.turn, repeated))
        cursor.execute(REQUEUE, (run_id,))
        cursor.execute(FORGET_END, (run_id,))
        if person is not None:
            Run.requesters.through.objects.get_or_create(run_id=run_id, user_id=person.pk)
        hooks().record(
            cursor, run_id=run_id, team_id=run.team_id, type="run.retried", actor=actor, body={"turn": run.turn}
        )
        ring(run_id)


def _may_repeat(run: LockedRun, key: str, body: bytes) -> bool:
    try:
        return may_repeat(unseal(body, outcome_place(run.run_id, run.turn, key), what=f"step {key!r}"))
    except Unreadable:
        return False  # the run will be blocked for it, and lose nothing


def later_effects(*, run_id: UUID, turn: int) -> list[Step]:
    """The effects that a run caused, or may have caused, in `turn` and after: what a fork from there would repeat."""
    return list(
        Step.objects.filter(run_id=run_id, turn__gte=turn)
        .exclude(effect="read")
        .exclude(state=StepState.NOT_PERFORMED)
        .order_by("turn", "ordinal")
    )


def fork_run(*, run_id: UUID, seq: int, actor: str, acknowledged: bool, person: User | None = None) -> Run:
    """A new run from checkpoint `seq` of another: its own id, its own approvals, its own idempotency keys.

    Works inside the caller's transaction, if there is one.
    Raises RunNotFound; `checkpoints.errors.NotFound`; NotAcknowledged with the parent's effects after that checkpoint;
    WrongState where the code lives elsewhere; UnknownWorkflow; Unreadable.
    """
    fork_id = uuid4()
    with transaction.atomic(), connection.cursor() as cursor:
        parent = Run.objects.filter(id=run_id).select_related("head").first()
        if parent is None:
            raise RunNotFound(run_id)
        status = lock_run(cursor, run_id).status
        if parent.resume_mode in OUTSIDE:
            raise WrongState(run_id, status, "forked here: its code lives elsewhere")
        if find_workflow(parent.head.workflow) is None:
            raise UnknownWorkflow(parent.head.workflow, known_workflows())
        first = copy_for_fork(source_run=run_id, seq=seq, target_run=fork_id)
        fork = Run.objects.create(
            id=fork_id,
            team_id=parent.team_id,
            agent_id=parent.agent_id,
            key_id=parent.key_id,
            kind=RunKind.HOSTED,
            resume_mode=ResumeMode.HOSTED,
            title=parent.title,
            input=seal(unseal(parent.input, input_place(run_id), what="input"), input_place(fork_id)),
            parent=parent,
            parent_seq=seq,
        )
        fork.requesters.set(parent.requesters.all())
        if person is not None:
            fork.requesters.add(person)
        effects = later_effects(run_id=run_id, turn=first.label.turn)
        if effects and not acknowledged:
            raise NotAcknowledged(run_id, tuple(f"{step.tool} ({step.key})" for step in effects))
        RunHead.objects.create(
            run=fork,
            status=RunStatus.QUEUED,
            workflow=first.label.workflow,
            schema=first.label.schema,
            phase=first.label.phase,
            turn=first.label.turn,
            head_seq=first.head.seq,
            rings=1,
        )
        hooks().record(
            cursor,
            run_id=fork.id,
            team_id=parent.team_id,
            type="run.forked",
            actor=actor,
            body={"parent": str(run_id), "seq": seq, "effects": [step.key for step in effects]},
        )
        ring(fork.id)
    return fork
