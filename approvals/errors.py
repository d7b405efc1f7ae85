"""What can go wrong with an approval. Each exception carries the facts; `fermata.problems` turns them into HTTP."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

FieldErrors = Sequence[tuple[str, str]]

GrantTrouble = Literal[
    "not_approved",
    "already_consumed",
    "grant_expired",
    "digest_mismatch",
    "revoked",
    "void",
    "not_consumed",
    "outcome_conflict",
    "denied",
]


class ApprovalError(Exception):
    """The root of everything that `approvals` raises for its callers."""


class Refused(ApprovalError):
    """An attempt on an existing approval that changed nothing. Every one is written into the audit trail."""


@dataclass
class NotVisible(Refused):
    """Unknown, or not for this principal to see: the two must look the same from outside."""

    approval_id: UUID

    def __str__(self) -> str:
        return f"there is no approval {self.approval_id}"


@dataclass
class NotEligible(Refused):
    """The person sees the approval and may not do this; `why` is a sentence for that person."""

    approval_id: UUID
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass
class AlreadyDecided(Refused):
    """Somebody else was first. `by` is a display name, None for the clock or a rule; `outcome` a status."""

    approval_id: UUID
    by: str | None
    outcome: str
    at: datetime | None
    successor: UUID | None = None

    def __str__(self) -> str:
        who = f" by {self.by}" if self.by else ""
        return f"already {self.outcome}{who}"


@dataclass
class AlreadyVoted(Refused):
    """The person's verdict already counts, by their own vote or by a delegate's."""

    approval_id: UUID
    verdict: str
    at: datetime

    def __str__(self) -> str:
        return f"your vote to {self.verdict} already counts"


@dataclass
class StaleReview(Refused):
    """The vote was about something else than what is current.

    `review` is the current digest; `difference` the RFC 6902 patch (JSON text) from the arguments that the voter saw to
    the current ones, None when the voter's digest names no revision of this approval.
    """

    approval_id: UUID
    review: str
    difference: str | None

    def __str__(self) -> str:
        return "what you reviewed has changed since: look at it again"


@dataclass
class NotAllowed(Refused):
    """This verdict is not open to anybody here; `why` says what rules it out."""

    approval_id: UUID
    verdict: str
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass
class EditInvalid(Refused):
    """Edited arguments that cannot be accepted; `errors` are (JSON pointer, message) pairs."""

    approval_id: UUID
    errors: FieldErrors

    def __str__(self) -> str:
        return "; ".join(f"{path or 'arguments'} {message}" for path, message in self.errors)


@dataclass
class VoteInvalid(Refused):
    """A vote that says nothing definite; `errors` are (field, message) pairs."""

    approval_id: UUID
    errors: FieldErrors

    def __str__(self) -> str:
        return "; ".join(f"{field} {message}" for field, message in self.errors)


@dataclass
class StepUpNeeded(Refused):
    """The policy wants the person to prove again who they are, for this review digest and this verdict."""

    approval_id: UUID
    review: str
    verdict: str

    def __str__(self) -> str:
        return "confirm that it is you, and decide again"


@dataclass
class TokenNotEnough(Refused):
    """A vote by personal token where the person has to decide themselves; `why` is a sentence for them."""

    approval_id: UUID
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass
class ClaimedByOther(Refused):
    approval_id: UUID
    holder: str
    until: datetime

    def __str__(self) -> str:
        return f"{self.holder} is on it"


@dataclass
class NothingToUndo(Refused):
    """The person has no vote here that could be taken back."""

    approval_id: UUID

    def __str__(self) -> str:
        return "you have no vote here to take back"


@dataclass
class GrantProblem(Refused):
    """A grant cannot be spent, revoked or reported on; `facts` may name when and by which key it was spent."""

    approval_id: UUID
    kind: GrantTrouble
    facts: dict[str, Any]

    def __str__(self) -> str:
        return f"the grant: {self.kind.replace('_', ' ')}"


@dataclass
class InvalidAsk(ApprovalError):
    """Something that an agent asked for cannot be asked; `errors` are (JSON pointer, message) pairs."""

    errors: FieldErrors

    def __str__(self) -> str:
        return "; ".join(f"{path} {message}" for path, message in self.errors)


@dataclass
class TooManyPending(ApprovalError):
    """With what is asked, the agent would have more open approvals than it may."""

    agent: str
    cap: int

    def __str__(self) -> str:
        return f"{self.agent} may have {self.cap} open approvals, and with these it would have more"


@dataclass
class PolicyInvalid(ApprovalError):
    """A policy or a rule that makes no sense; `errors` are (field, message) pairs."""

    errors: FieldErrors

    def __str__(self) -> str:
        return "; ".join(f"{field} {message}" for field, message in self.errors)


@dataclass
class ChangeRefused(ApprovalError):
    """This person cannot change the rules like this; `why` is a sentence for them."""

    why: str

    def __str__(self) -> str:
        return self.why


class DelegationRefused(ChangeRefused):
    """A delegation cannot be made, confirmed or ended like this."""


class SettledMeanwhile(ChangeRefused):
    """The rules of what is settled do not change any more."""


@dataclass
class ChangeDecided(ChangeRefused):
    """Somebody else was first: `by` is a display name, `outcome` what became of the proposal."""

    by: str
    outcome: str
    at: datetime


@dataclass
class ChangeStale(ChangeRefused):
    """What the proposal would change is not what it was when it was proposed."""
