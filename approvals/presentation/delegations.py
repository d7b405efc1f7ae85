"""Who votes for whom, as a person reads it."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from approvals.models import Delegation
from approvals.presentation.policy import name_of
from approvals.queries.confirmers import confirmers_of
from runs.clock import DatabaseNow, database_now


@dataclass(frozen=True, slots=True)
class DelegationLine:
    """One delegation that is not over. `state` is a word or a few; `counts` whether it may be used at all,
    `counts_high` for high risk too. `waits_for` says to who takes part and may not confirm it who can, or from when."""

    delegation: Delegation
    giver: str
    taker: str
    state: str
    tone: str
    counts: bool
    counts_high: bool
    may_confirm: bool
    waits_for: str


def delegation_lines(delegations: QuerySet[Delegation], viewer: User) -> list[DelegationLine]:
    """Those that are in force or still to come, the next to end first."""
    living = delegations.filter(Q(ends_at__gt=DatabaseNow()), revoked_at__isnull=True)
    now = database_now()
    lines = []
    for given in living.select_related("giver", "taker").order_by("ends_at", "id"):
        is_on = given.starts_at <= now
        counts = given.confirmed_by_id is not None or given.created_by_id == given.giver_id
        people = confirmers_of(given) if given.confirmed_by_id is None else None
        takes_part, why_not = (people.takes_part(viewer.pk), people.why_not(viewer.pk)) if people else (False, "")
        lines.append(
            DelegationLine(
                delegation=given,
                giver="you" if given.giver_id == viewer.pk else name_of(given.giver),
                taker="You" if given.taker_id == viewer.pk else name_of(given.taker),
                state=("In force" if is_on else "To come")
                if counts
                else "Waits for another administrator or a superuser",
                tone="tone-accent" if is_on and counts else "",
                counts=counts,
                counts_high=given.confirmed_by_id is not None,
                may_confirm=takes_part and not why_not,
                waits_for=why_not if takes_part else "",
            )
        )
    return lines
