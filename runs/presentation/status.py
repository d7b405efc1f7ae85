"""A run's status in words."""

from dataclasses import dataclass
from datetime import datetime

from runs.models import Run, RunHead
from runs.states import FINISHED, OUTSIDE, RunStatus, SuspendReason

TONES = {
    RunStatus.RUNNING: "tone-accent",
    RunStatus.SUSPENDED: "tone-hold",
    RunStatus.BLOCKED: "tone-bad",
    RunStatus.COMPLETED: "tone-good",
    RunStatus.FAILED: "tone-bad",
}
MARKS = {RunStatus.SUSPENDED: "fermata"}
WAITS = {
    SuspendReason.APPROVAL: "Waits for a person's decision.",
    SuspendReason.TIMER: "Sleeps, and goes on by itself.",
    SuspendReason.EVENT: "Waits for something that the outside must tell it.",
    SuspendReason.IN_DOUBT: "A call was started and nobody knows whether it happened. A person must say.",
    SuspendReason.SETTLING: "A call may still be on its way. When its time is over, it will be known or asked.",
}
SENTENCES = {
    RunStatus.QUEUED: "Ready to go on; the next free worker takes it.",
    RunStatus.RUNNING: "A worker has it.",
    RunStatus.BLOCKED: "The deployed code cannot take it up. Nothing is lost; it can be retried after a deploy.",
    RunStatus.COMPLETED: "It came to its end.",
    RunStatus.FAILED: "It stopped with an error. Its last checkpoint is intact.",
    RunStatus.CANCELLED: "It was ended by hand.",
}
OUTSIDE_SENTENCES = {
    RunStatus.QUEUED: "Ready to go on; its agent takes it up.",
    RunStatus.RUNNING: "Its agent has it.",
}


@dataclass(frozen=True, slots=True)
class StatusLine:
    """`detail` is the run's own text, from outside; `until` is when a wait ends by itself."""

    label: str
    mark: str
    tone: str
    sentence: str
    detail: str
    until: datetime | None
    is_final: bool


def status_line(run: Run) -> StatusLine:
    head: RunHead = run.head
    status = RunStatus(head.status)
    suspended = status == RunStatus.SUSPENDED
    return StatusLine(
        label=status.label,
        mark=MARKS.get(status, status.value),
        tone=TONES.get(status, ""),
        sentence=WAITS[SuspendReason(head.reason)] if suspended else _sentence(run, status),
        detail=head.detail,
        until=head.wake_at if suspended else None,
        is_final=status in FINISHED,
    )


def _sentence(run: Run, status: RunStatus) -> str:
    return (OUTSIDE_SENTENCES if run.resume_mode in OUTSIDE else {}).get(status, SENTENCES[status])
