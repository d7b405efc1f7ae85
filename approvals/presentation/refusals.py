"""Refusals as a reviewer reads them: who was first, what changed, why not."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from approvals import errors
from approvals.models import Approval, Revision
from approvals.presentation.diffs import Change, changes
from approvals.states import ApprovalStatus

WORDS = {ApprovalStatus.EDITED: "edited and approved", ApprovalStatus.RESPONDED: "answered"}


@dataclass(frozen=True)
class Notice:
    """What stands on top of the card. `status` is that of the HTTP answer; `at` is when it was decided."""

    title: str
    text: str
    status: int = 409
    at: datetime | None = None
    changes: tuple[Change, ...] = ()
    successor: UUID | None = None


def notice(error: errors.Refused, approval: Approval, *, seen: str = "") -> Notice:
    """`seen` is the review digest that the person voted on."""
    match error:
        case errors.AlreadyDecided():
            return _already_decided(error)
        case errors.StaleReview():
            return changed(approval, seen)
        case errors.AlreadyVoted():
            return Notice("You have voted already", f"Your vote to {error.verdict} counts. Undo it first to change it.")
        case errors.ClaimedByOther():
            return Notice(f"{error.holder} is on it", "A claim keeps nobody from deciding; talk to each other.")
        case errors.NothingToUndo():
            return Notice("Nothing to undo", "You have no vote here that could be taken back.")
        case errors.NotEligible():
            return Notice("Not for you to decide", str(error), status=403)
        case errors.NotAllowed():
            return Notice("Not possible here", str(error), status=403)
        case _:
            return Notice("Not done", f"{error}.", status=400)


def _already_decided(error: errors.AlreadyDecided) -> Notice:
    outcome = WORDS.get(ApprovalStatus(error.outcome), error.outcome)
    who = f" by {error.by}" if error.by else ""
    return Notice(f"Already {outcome}{who}", "Your click changed nothing.", at=error.at, successor=error.successor)


def changed(approval: Approval, seen: str) -> Notice:
    """The card is about something else than what the review digest `seen` stood for."""
    revision = Revision.objects.filter(approval=approval, review=seen).first() if seen else None
    different = tuple(changes(revision.args, approval.args)) if revision else ()
    text = (
        "The arguments were edited while you were reading. What you saw, and what it is now:"
        if different
        else "Its policy or its context changed while you were reading. Look at it again, then decide."
    )
    return Notice("This card has changed", text, changes=different)
