"""Voting: one path for every verdict, and its way back."""

from datetime import timedelta
from uuid import UUID

from django.contrib.auth.models import User

from approvals import canonical
from approvals.audit import EventType
from approvals.errors import (
    AlreadyVoted,
    NotAllowed,
    NotEligible,
    NothingToUndo,
    StaleReview,
    TokenNotEnough,
    VoteInvalid,
)
from approvals.models import Approval, Vote
from approvals.policies import Electorate
from approvals.secrecy import credentials_in
from approvals.services import editing
from approvals.services.case import Case
from approvals.services.deciding import deciding, retry_deadlocks
from approvals.services.settling import NO_HOLD, already_decided, count
from approvals.services.stepup import use_step_up
from approvals.states import ApprovalKind, ApprovalStatus, Risk, Verdict
from runs.principals import Person

MAX_MESSAGE = 10_000
CHANGED, CONFIRMED = "changed their mind", "decided themselves after a token had voted"


@retry_deadlocks
def vote(
    *,
    approval_id: UUID,
    voter: User,
    verdict: str,
    review: str,
    args: str | None = None,
    message: str = "",
    hold: timedelta = NO_HOLD,
    on_behalf_of: User | None = None,
    by_token: bool = False,
) -> Approval:
    """Record one person's verdict and, if it decides, settle at once or after `hold`.

    `review` is the digest of what the person was shown; `args`, for an edit, the new arguments as JSON text. Somebody
    without a seat of their own votes for a person who delegated to them; `on_behalf_of` says for whom, if it matters.
    `by_token`: it is a personal token of theirs that votes.

    Raises `NotVisible`, `VoteInvalid`, `NotEligible`, `AlreadyDecided`, `StaleReview`, `NotAllowed`, `AlreadyVoted`,
    `TokenNotEnough`, `StepUpNeeded`, `EditInvalid`. Each of them is put on record.
    """
    person = Person(voter)
    attempt = verdict if verdict in Verdict.values else "vote"
    with deciding(approval_id, by=person, attempt=attempt) as case:
        _check_words(case, verdict, args, message)
        voters = case.electorate([voter.pk])
        giver = _seat(case, voters, voter, on_behalf_of)
        if case.approval.status != ApprovalStatus.PENDING:
            raise already_decided(case)
        _check_review(case, review)
        _check_allowed(case, voters, verdict, [voter.pk] if giver is None else [voter.pk, giver])
        if by_token:
            _check_token(case)
        _make_room(case, verdict, voter, giver, by_token=by_token)
        if case.requirements.reauthentication:
            use_step_up(case, voter, verdict)
        if verdict == Verdict.EDIT:
            editing.revise(case, voter, args or "")
            if by_token:
                _check_token(case)  # the edited action may be of another risk
        _cast(case, verdict, voter, giver, message, by_token=by_token)
        count(case, voters, hold=hold, actor=person.actor)
    return case.approval


@retry_deadlocks
def undo(*, approval_id: UUID, voter: User) -> Approval:
    """Take one's own vote back while nothing is settled. An edit that nobody else voted on goes back with it.

    Raises `NotVisible`, `AlreadyDecided`, `NothingToUndo`. Each of them is put on record.
    """
    person = Person(voter)
    with deciding(approval_id, by=person, attempt="undo") as case:
        if not case.approval.is_open:
            raise already_decided(case)
        votes = case.votes()
        mine = next((vote for vote in votes if vote.voter_id == voter.pk), None)
        if mine is None:
            raise NothingToUndo(approval_id)
        _void(mine)
        case.record(
            EventType.VOTE_UNDONE, person.actor, {"person": voter.pk, "verdict": mine.verdict}, person_id=voter.pk
        )
        if case.approval.status == ApprovalStatus.HELD:
            case.change(status=ApprovalStatus.PENDING, held_until=None)
        if mine.verdict == Verdict.EDIT and len(votes) == 1:
            editing.restore(case, voter)
        case.note_votes()
    return case.approval


# --- inside ------------------------------------------------------------------------------------------------------


def _check_words(case: Case, verdict: str, args: str | None, message: str) -> None:
    errors = []
    if verdict not in Verdict.values:
        errors.append(("type", f"must be one of {', '.join(Verdict.values)}"))
    if (verdict == Verdict.EDIT) != (args is not None):
        errors.append(("args", "must come with an edit, and only with an edit"))
    if len(message) > MAX_MESSAGE:
        errors.append(("message", f"must have at most {MAX_MESSAGE} characters"))
    elif not message.strip() and (verdict == Verdict.RESPOND or case.requirements.reason):
        errors.append(("message", "must say something"))
    else:
        errors += [("message", wrong) for wrong in canonical.wrong_text(message)]
        errors += [("message", wrong) for _, wrong in credentials_in(message)]
    if errors:
        raise VoteInvalid(case.approval.pk, errors)


def _seat(case: Case, voters: Electorate, voter: User, on_behalf_of: User | None) -> int | None:
    """For whom the person votes: None for themselves, or the id of who delegated to them. Raises `NotEligible`."""
    if why := voters.why_not(voter.pk):
        raise NotEligible(case.approval.pk, why)
    if on_behalf_of is not None:
        if on_behalf_of.pk in voters.givers(voter.pk) and voters.holds_seat(on_behalf_of.pk):
            return on_behalf_of.pk
        raise NotEligible(case.approval.pk, f"You cannot decide this for {on_behalf_of.get_username()}.")
    return None if voters.holds_seat(voter.pk) else voters.seat_lent_to(voter.pk)


def _check_review(case: Case, review: str) -> None:
    if review != case.approval.review:
        raise StaleReview(case.approval.pk, case.approval.review, editing.difference_since(case, review))


def _check_allowed(case: Case, voters: Electorate, verdict: str, people: list[int]) -> None:
    approval, why = case.approval, ""
    if approval.kind != ApprovalKind.ACTION:
        why = "The question here is whether a call happened."
    elif verdict not in approval.allowed:
        why = f"The agent takes no {verdict} here."
    elif verdict == Verdict.EDIT and not case.requirements.edits:
        why = "The policy allows no edits here."
    elif verdict == Verdict.RESPOND and not voters.decides_alone(people):
        why = "You cannot decide this alone, so you cannot answer in the call's place."
    if why:
        raise NotAllowed(approval.pk, verdict, why)


def _check_token(case: Case) -> None:
    if case.requirements.risk == Risk.HIGH:
        raise TokenNotEnough(case.approval.pk, "A personal token never counts for high risk: decide in the inbox.")
    if case.requirements.reauthentication:
        raise TokenNotEnough(case.approval.pk, "Here you have to prove that it is you: decide in the inbox.")


def _make_room(case: Case, verdict: str, voter: User, giver: int | None, *, by_token: bool) -> None:
    """One vote for each person: changing one's own mind replaces it, or saying oneself what a token said before;
    anything else is refused.

    A delegated vote fills both people's seats, so neither of them can vote besides it.
    """
    people = {voter.pk, giver} - {None}
    for earlier in case.votes():
        if people.isdisjoint({earlier.voter_id, earlier.on_behalf_of_id}):
            continue
        confirms = earlier.by_token and not by_token
        if earlier.voter_id != voter.pk or (earlier.verdict == verdict and not confirms):
            raise AlreadyVoted(case.approval.pk, earlier.verdict, earlier.at)
        _void(earlier)
        case.record(
            EventType.VOTE_VOIDED,
            Person(voter).actor,
            {"person": voter.pk, "verdict": earlier.verdict, "reason": CONFIRMED if confirms else CHANGED},
            person_id=voter.pk,
        )


def _cast(case: Case, verdict: str, voter: User, giver: int | None, message: str, *, by_token: bool) -> None:
    Vote.objects.create(
        approval=case.approval,
        revision=case.approval.revision,
        voter=voter,
        on_behalf_of_id=giver,
        verdict=verdict,
        message=message,
        review=case.approval.review,
        by_token=by_token,
        at=case.now,
    )
    case.record(
        EventType.VOTE_CAST,
        Person(voter).actor,
        {
            "person": voter.pk,
            "on_behalf_of": giver,
            "verdict": verdict,
            "message": message,
            "revision": case.approval.revision,
            "review": case.approval.review,
            "action": case.approval.action,
            "args": case.approval.args,
            "by_token": by_token,
        },
        person_id=voter.pk,
    )


def _void(vote: Vote) -> None:
    vote.void = True
    vote.save(update_fields=["void"])
