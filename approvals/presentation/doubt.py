"""A call that was started and whose outcome nobody knows: what is on record about it."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.safestring import SafeString

from approvals.models import Approval
from checkpoints.codec import to_jsonable
from runs.bodies import opened, outcome_place
from runs.models import Step, StepEvidence
from runs.presentation.values import pretty


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a worker held in its hands when it found that it had lost the run."""

    at: datetime
    outcome: SafeString


@dataclass(frozen=True, slots=True)
class Doubt:
    """`safe_at`: from when on "it did not happen" can be true for good."""

    started_at: datetime | None
    safe_at: datetime | None
    receipts: tuple[Receipt, ...]


def doubt(approval: Approval) -> Doubt:
    place = {"run": approval.run_id, "turn": approval.turn, "key": approval.key}
    step = Step.objects.filter(**place).first()
    receipt = outcome_place(approval.run_id, approval.turn, approval.key)
    receipts = tuple(
        Receipt(found.at, pretty(to_jsonable(opened(found.outcome, receipt, what="receipt"))))
        for found in StepEvidence.objects.filter(**place).order_by("at")
    )
    return Doubt(step.started_at if step else None, approval.safe_at, receipts)
