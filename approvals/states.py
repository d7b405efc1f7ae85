"""The states of an approval and of its grant, and the moves between them.

The migrations carry both tables into database triggers, and a test compares them.
"""

from django.db.models import TextChoices


class ApprovalKind(TextChoices):
    ACTION = "action"
    IN_DOUBT = "in_doubt"  # a call was started and nobody knows whether it happened


class ApprovalStatus(TextChoices):
    PENDING = "pending"
    HELD = "held"
    APPROVED = "approved"
    EDITED = "edited"
    REJECTED = "rejected"
    RESPONDED = "responded"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


class Verdict(TextChoices):
    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    RESPOND = "respond"


class Risk(TextChoices):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class GrantStatus(TextChoices):
    READY = "ready"
    SPENT = "spent"
    REVOKED = "revoked"
    VOID = "void"
    LAPSED = "lapsed"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    IN_DOUBT = "in_doubt"


OPEN = frozenset({ApprovalStatus.PENDING, ApprovalStatus.HELD})
SETTLED = frozenset(ApprovalStatus) - OPEN
GRANTING = frozenset({ApprovalStatus.APPROVED, ApprovalStatus.EDITED})
CLOSED = frozenset({ApprovalStatus.CANCELLED, ApprovalStatus.SUPERSEDED})  # taken back, without an answer

TRANSITIONS: dict[ApprovalStatus, frozenset[ApprovalStatus]] = {
    ApprovalStatus.PENDING: SETTLED | {ApprovalStatus.HELD},
    ApprovalStatus.HELD: SETTLED - {ApprovalStatus.EXPIRED} | {ApprovalStatus.PENDING},  # a held vote was in time
    **{status: frozenset() for status in sorted(SETTLED)},
}

GRANT_TRANSITIONS: dict[GrantStatus, frozenset[GrantStatus]] = {
    GrantStatus.READY: frozenset({GrantStatus.SPENT, GrantStatus.REVOKED, GrantStatus.VOID, GrantStatus.LAPSED}),
    GrantStatus.SPENT: frozenset({GrantStatus.SUCCEEDED, GrantStatus.FAILED, GrantStatus.IN_DOUBT}),
    GrantStatus.IN_DOUBT: frozenset({GrantStatus.SUCCEEDED, GrantStatus.FAILED, GrantStatus.SPENT, GrantStatus.LAPSED}),
    GrantStatus.REVOKED: frozenset(),
    GrantStatus.VOID: frozenset(),
    GrantStatus.LAPSED: frozenset(),
    GrantStatus.SUCCEEDED: frozenset(),
    GrantStatus.FAILED: frozenset(),
}
