"""The table of transitions in Python and the one in the database are the same."""

from itertools import product
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from runs.models import Agent, Gate, Run, RunHead, Step
from runs.states import TRANSITIONS, GateKind, ResumeMode, RunKind, RunStatus, StepState, SuspendReason

pytestmark = pytest.mark.django_db


def put(agent: Agent, status: RunStatus) -> RunHead:
    run = Run.objects.create(id=uuid4(), team=agent.team, agent=agent, kind="hosted", title="t", input=b"")
    return RunHead.objects.create(run=run, epoch=1, **columns(status))


def columns(status: RunStatus) -> dict[str, object]:
    """The fields that the constraints ask for in this state."""
    return {
        "status": status,
        "lease": "2026-01-01T00:00:00Z" if status == RunStatus.RUNNING else None,
        "reason": SuspendReason.APPROVAL if status == RunStatus.SUSPENDED else "",
        "detail": "because" if status == RunStatus.BLOCKED else "",
    }


@pytest.mark.parametrize(("before", "after"), [p for p in product(RunStatus, RunStatus) if p[0] != p[1]])
def test_the_database_allows_exactly_the_transitions_of_the_table(
    agent: Agent, before: RunStatus, after: RunStatus
) -> None:
    head = put(agent, before)
    change = RunHead.objects.filter(pk=head.pk)
    if after in TRANSITIONS[before]:
        assert change.update(**columns(after)) == 1
    else:
        with pytest.raises(IntegrityError, match="cannot go from"), transaction.atomic():
            change.update(**columns(after))


@pytest.mark.parametrize("reason", SuspendReason)
def test_a_run_is_suspended_for_every_known_reason(agent: Agent, reason: SuspendReason) -> None:
    assert RunHead.objects.filter(pk=put(agent, RunStatus.SUSPENDED).pk).update(reason=reason) == 1


@pytest.mark.parametrize(
    ("status", "wrong"),
    [
        (RunStatus.RUNNING, {"lease": None}),
        (RunStatus.RUNNING, {"epoch": 0}),
        (RunStatus.RUNNING, {"reason": "approval"}),
        (RunStatus.QUEUED, {"lease": "2026-01-01T00:00:00Z"}),
        (RunStatus.QUEUED, {"reason": "approval"}),
        (RunStatus.SUSPENDED, {"reason": ""}),
        (RunStatus.SUSPENDED, {"reason": "whim"}),
        (RunStatus.SUSPENDED, {"lease": "2026-01-01T00:00:00Z"}),
        (RunStatus.BLOCKED, {"detail": ""}),
    ],
)
def test_the_database_refuses_a_state_without_what_belongs_to_it(
    agent: Agent, status: RunStatus, wrong: dict[str, object]
) -> None:
    head = put(agent, status)
    with pytest.raises(IntegrityError, match="runs_head_sound"), transaction.atomic():
        RunHead.objects.filter(pk=head.pk).update(**wrong)


def test_the_database_refuses_a_new_run_in_no_known_state(agent: Agent) -> None:
    run = put(agent, RunStatus.QUEUED).run
    RunHead.objects.all().delete()
    with pytest.raises(IntegrityError, match="runs_head_sound"), transaction.atomic():
        RunHead.objects.create(run=run, status="asleep")


def step(run: Run, **columns: object) -> Step:
    return Step.objects.create(
        run=run, turn=1, key=str(columns), ordinal=1, phase="p", tool="t", effect="once", args_hash=b"", epoch=1,
        build="b", **columns,
    )  # fmt: skip


@pytest.mark.parametrize("state", StepState)
def test_a_step_has_an_outcome_once_it_is_settled(agent: Agent, state: StepState) -> None:
    run = put(agent, RunStatus.QUEUED).run
    right, wrong = (None, b"x") if state == StepState.INTENT else (b"x", None)
    assert step(run, state=state, outcome=right)
    with pytest.raises(IntegrityError, match="runs_step_sound"), transaction.atomic():
        step(run, state=state, outcome=wrong)
    with pytest.raises(IntegrityError, match="runs_step_sound"), transaction.atomic():
        step(run, state="whim", outcome=right)


@pytest.mark.parametrize("kind", GateKind)
def test_a_gate_delivers_an_answer_that_has_a_time(agent: Agent, kind: GateKind) -> None:
    def gate(**columns: object) -> Gate:
        columns = {"kind": kind, **columns}
        key = str(columns)
        return Gate.objects.create(run=run, turn=1, key=key, ordinal=1, phase="p", question_hash=b"", **columns)

    run, at = put(agent, RunStatus.QUEUED).run, "2026-01-01T00:00:00Z"
    assert gate()
    assert gate(answer=b"x", answered_at=at)
    assert gate(answer=b"x", answered_at=at, delivered_at=at)
    for wrong in ({"answer": b"x"}, {"answered_at": at}, {"delivered_at": at}, {"kind": "whim"}):
        with pytest.raises(IntegrityError, match="runs_gate_sound"), transaction.atomic():
            gate(**wrong)


@pytest.mark.parametrize(("kind", "mode"), list(product(RunKind, ResumeMode)))
def test_a_run_is_of_a_known_kind_and_forked_from_a_checkpoint(agent: Agent, kind: str, mode: str) -> None:
    run = put(agent, RunStatus.QUEUED).run
    change = Run.objects.filter(pk=run.pk)
    assert change.update(kind=kind, resume_mode=mode, parent=run, parent_seq=0) == 1
    for wrong in ({"kind": "whim"}, {"resume_mode": "whim"}, {"parent": None}, {"parent_seq": None}):
        with pytest.raises(IntegrityError, match="runs_run_sound"), transaction.atomic():
            change.update(**wrong)


def test_what_a_checkpoint_writes_has_few_checks_to_parse() -> None:
    """Each statement parses them anew: written out they were 22,000 characters, a third of the server's work."""
    hot = ["runs_head", "runs_step", "checkpoints_checkpoint", "checkpoints_statepart", "checkpoints_historychunk"]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(length(conbin)) FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text = ANY(%s)",
            [hot],
        )
        assert 500 < cursor.fetchone()[0] < 2_500
