"""The states of a run and the moves between them.

`TRANSITIONS` is the whole table; the migrations carry the same table into a database trigger, and a test
compares the two.
"""

from django.db.models import TextChoices


class RunStatus(TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    SUSPENDED = "suspended"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class SuspendReason(TextChoices):
    """What a suspended run waits for."""

    APPROVAL = "approval"
    TIMER = "timer"
    EVENT = "event"
    IN_DOUBT = "in_doubt"
    SETTLING = "settling"  # a call's deadline must pass before anyone may say that it did not happen


class RunKind(TextChoices):
    HOSTED = "hosted"
    EXTERNAL = "external"


class ResumeMode(TextChoices):
    """How an external run goes on after its decision."""

    HOSTED = "hosted"
    WORKFLOW = "workflow"
    POLL = "poll"
    WEBHOOK = "webhook"


OUTSIDE = frozenset({ResumeMode.POLL, ResumeMode.WEBHOOK})  # the agent's own code goes on, and nothing here executes it


class PostState(TextChoices):
    """What became of something that a run's agent is to be told by webhook."""

    PENDING = "pending"
    DELIVERED = "delivered"
    SUPERSEDED = "superseded"  # by a newer one about the same run, which says all that counts
    GIVEN_UP = "given_up"


class WebhookStanding(TextChoices):
    """How an agent's webhook does. Posts go out while it is verified or failing."""

    NOT_VERIFIED = "not_verified"
    VERIFIED = "verified"
    FAILING = "failing"
    GONE = "gone"


class StepState(TextChoices):
    INTENT = "intent"
    DONE = "done"
    FAILED = "failed"
    NOT_PERFORMED = "not_performed"


class GateKind(TextChoices):
    APPROVAL = "approval"
    TIMER = "timer"
    EVENT = "event"


FINISHED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})

TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.QUEUED: frozenset(
        {RunStatus.RUNNING, RunStatus.BLOCKED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.SUSPENDED}
    ),
    RunStatus.RUNNING: frozenset(
        {
            RunStatus.QUEUED,
            RunStatus.SUSPENDED,
            RunStatus.BLOCKED,
            RunStatus.COMPLETED,
            RunStatus.FAILED,
            RunStatus.CANCELLED,
        }
    ),
    RunStatus.SUSPENDED: frozenset({RunStatus.QUEUED, RunStatus.BLOCKED, RunStatus.FAILED, RunStatus.CANCELLED}),
    RunStatus.BLOCKED: frozenset({RunStatus.QUEUED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.SUSPENDED}),
    RunStatus.FAILED: frozenset({RunStatus.QUEUED}),  # an operator retries from the last checkpoint
    RunStatus.COMPLETED: frozenset(),
    RunStatus.CANCELLED: frozenset(),
}
