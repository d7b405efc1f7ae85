"""Who decides, how the votes stand, and why this person may or may not, in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User

from approvals.models import Approval, Vote
from approvals.policies import Electorate, Requirements, Seat, Tally, describe
from approvals.states import Verdict

AGENTS_WISH = 0  # the policy id of what the agent itself asked for

DID = {
    Verdict.APPROVE: "approved",
    Verdict.EDIT: "edited and approved",
    Verdict.REJECT: "rejected",
    Verdict.RESPOND: "answered in place of the call",
}


@dataclass(frozen=True, slots=True)
class SeatLine:
    """`count` people are wanted, `taken` have approved; `dots` is one truth for each seat."""

    words: str
    count: int
    taken: int
    dots: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class VoteLine:
    who: str
    did: str
    at: datetime
    message: str
    void: bool


def name_of(person: User) -> str:
    return person.get_full_name() or person.get_username()


def seat_lines(requirements: Requirements, tally: Tally) -> list[SeatLine]:
    """One line for each set of pools: of what several policies ask of the same people, the most includes the rest."""
    missing = {(seat.policy, seat.pools): seat.count for seat in tally.missing}
    most: dict[tuple[str, ...], Seat] = {}
    for seat in requirements.seats:
        if seat.pools not in most or most[seat.pools].count < seat.count:
            most[seat.pools] = seat
    lines = [_line(seat, missing.get((seat.policy, seat.pools), 0)) for seat in most.values()]
    if requirements.approvers > max((seat.count for seat in requirements.seats), default=0):
        taken = requirements.approvers - tally.more
        lines.append(_seat("different people in all", requirements.approvers, taken))
    return lines


def rule_lines(requirements: Requirements, *, closes_others: bool) -> list[str]:
    """What else the policies ask, and the gate, one sentence each."""
    rules = ["The first answer at this gate counts: it closes the other questions."] if closes_others else []
    rules += [f"An approval must be used within {span(requirements.grant_life)}, once."]
    if requirements.reason:
        rules.append("A reason must be given.")
    if requirements.reauthentication:
        rules.append("Whoever decides confirms with their password.")
    if not requirements.edits:
        rules.append("The arguments cannot be edited.")
    if requirements.rejections > 1:
        rules.append(f"{requirements.rejections} people must reject to reject it.")
    rules += [f"At the deadline it goes to {describe([stage.pool])} too." for stage in requirements.stages]
    rules += [f"The deadline passed, and it went to {describe([stage.pool])} too." for stage in requirements.escalated]
    return rules


def vote_lines(votes: Sequence[Vote], approval: Approval) -> list[VoteLine]:
    return [
        VoteLine(
            who=name_of(vote.voter) + (f", for {name_of(vote.on_behalf_of)}," if vote.on_behalf_of else ""),
            did=DID[Verdict(vote.verdict)] + (f" revision {vote.revision}" if approval.revision > 1 else ""),
            at=vote.at,
            message=vote.message,
            void=vote.void or vote.revision != approval.revision,
        )
        for vote in votes
    ]


def right_to_vote(electorate: Electorate, viewer: User) -> str:
    """A sentence for the viewer; empty when there is nothing to say."""
    if why := electorate.why_not(viewer.pk):
        return why
    if electorate.holds_seat(viewer.pk):
        return "You can decide this."
    giver = electorate.seat_lent_to(viewer.pk)
    return f"You can decide this for {name_of(User.objects.get(pk=giver))}." if giver is not None else ""


def span(length: timedelta) -> str:
    """A length of time in its largest whole units: `1 day 2 h`, `15 min`."""
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "day" if days == 1 else "days"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 s"


def _line(seat: Seat, missing: int) -> SeatLine:
    words = f"of {describe(seat.pools)}" + (", as the agent asked" if seat.policy == AGENTS_WISH else "")
    return _seat(words, seat.count, seat.count - missing)


def _seat(words: str, count: int, taken: int) -> SeatLine:
    return SeatLine(f"{count} {words}", count, taken, tuple(at < taken for at in range(count)))
