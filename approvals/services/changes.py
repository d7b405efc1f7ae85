"""Changes of what guards high risk: one administrator proposes, another confirms. The one mechanism for all of them.

A superuser may be the other one. What guards nothing of high risk is applied at once. Where there is only one
administrator, that one may put a change in force alone: on record, and for all to see. Every attempt that is refused is
on record too.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from approvals import audit, dispatch
from approvals.errors import ChangeDecided, ChangeRefused, ChangeStale
from approvals.models import ChangeKind, ChangeOutcome, RuleChange
from approvals.queries.confirmers import NOT_ADMINISTRATOR, Confirmers, administrators_of, concerned, confirmers
from approvals.services.deciding import retry_deadlocks
from approvals.services.matters import Matter, matter_of
from approvals.services.refusing import attempting, refuse_change
from runs.clock import database_now
from runs.hooks import Cursor
from runs.models import Team
from runs.principals import Person

PROPOSE = "propose a change"
MOST_OPEN = 100  # proposals of one person that nobody has decided: pages show all of them


@retry_deadlocks
def propose(
    *, team: Team, by: User, kind: ChangeKind, body: str, keep: Callable[[], object] | None = None
) -> RuleChange:
    """Propose what `body` says, or apply it at once where it guards nothing of high risk. `keep` writes, in the same
    transaction, what is kept to apply it and has no place in `body`. Raises `ChangeRefused`."""
    with attempting(by=by, attempt=PROPOSE, teams=[team.pk], kind=kind) as cursor:
        if by.pk not in administrators_of([team.pk])[team.pk]:
            raise ChangeRefused(NOT_ADMINISTRATOR)
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        change = RuleChange(team=team, kind=kind, body=body, proposed_by=by, proposed_at=database_now())
        matter = matter_of(change)
        matter.lock()
        if not matter.starts_from_now():
            raise ChangeStale("It has changed in this moment: look at it again.")
        change.base, change.teams = _digest(matter.base()), sorted(matter.teams())
        if change.teams and RuleChange.objects.filter(proposed_by=by, outcome="").count() >= MOST_OPEN:
            raise ChangeRefused(f"{MOST_OPEN} proposals of yours wait for a second person: take one back first.")
        change.save()
        if keep is not None:
            keep()
        if change.teams:
            _record(cursor, matter, by, "proposed")
        else:
            _decide(cursor, matter, by, ChangeOutcome.APPLIED)
            matter.apply(by)
    return change


@retry_deadlocks
def confirm(*, change_id: int, by: User) -> RuleChange:
    """Put a proposal in force, as another administrator. Raises `RuleChange.DoesNotExist`, `ChangeRefused`."""
    with _deciding(change_id, by, "confirm") as held:
        if why := held.confirmers.why_not(by.pk):
            raise ChangeRefused(why)
        _put_in_force(held, by, alone=False, reason="")
    return held.change


@retry_deadlocks
def confirm_alone(*, change_id: int, by: User, reason: str) -> RuleChange:
    """Put one's own proposal in force, as the only administrator that there is, saying why.

    Raises `RuleChange.DoesNotExist`, `ChangeRefused`.
    """
    with _deciding(change_id, by, "confirm alone") as held:
        if why := held.confirmers.why_not_alone(by.pk):
            raise ChangeRefused(why)
        if not reason.strip():
            raise ChangeRefused("Say why it cannot wait.")
        _put_in_force(held, by, alone=True, reason=reason)
    return held.change


@retry_deadlocks
def withdraw(*, change_id: int, by: User) -> RuleChange:
    """Take a proposal back, or turn it down. Raises `RuleChange.DoesNotExist`, `ChangeRefused`."""
    with _deciding(change_id, by, "withdraw") as held:
        _decide(held.cursor, held.matter, by, ChangeOutcome.WITHDRAWN)
        held.matter.withdrawn()
    return held.change


def check_administers(*, by: User, team: int, attempt: str, **facts: Any) -> None:
    """Raises `ChangeRefused` for whoever does not administer the team, and puts their `attempt` (a few words for the
    trail) on record, with the `facts`."""
    if by.pk not in administrators_of([team])[team]:
        refuse_change(by=by, attempt=attempt, teams=[team], why=NOT_ADMINISTRATOR, **facts)


# --- inside ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Held:
    """An undecided proposal, under the locks of its teams and of what it changes."""

    cursor: Cursor
    change: RuleChange
    matter: Matter
    confirmers: Confirmers


@contextmanager
def _deciding(change_id: int, by: User, attempt: str) -> Iterator[_Held]:
    """The teams are locked before the proposal: two proposals about one thing are put in force one by one."""
    found = RuleChange.objects.only("team_id", "teams", "kind").get(pk=change_id)
    teams = concerned(found)
    with attempting(by=by, attempt=f"{attempt} a change", teams=teams, change=change_id, kind=found.kind) as cursor:
        list(Team.objects.select_for_update(no_key=True).filter(pk__in=teams).order_by("pk"))
        change = RuleChange.objects.select_for_update(no_key=True).get(pk=change_id)
        matter = matter_of(change)
        people = confirmers(
            proposer=change.proposed_by_id, teams=teams, subjects=matter.subjects(), of_site=matter.of_site()
        )
        if not people.takes_part(by.pk):
            raise ChangeRefused(NOT_ADMINISTRATOR)
        _check_open(change)
        matter.lock()
        yield _Held(cursor, change, matter, people)


def _check_open(change: RuleChange) -> None:
    if change.decided_by is not None and change.decided_at is not None:
        who = change.decided_by.get_full_name() or change.decided_by.get_username()
        raise ChangeDecided(
            f"{who} has {change.outcome} it already.", by=who, outcome=change.outcome, at=change.decided_at
        )


def _put_in_force(held: _Held, by: User, *, alone: bool, reason: str) -> None:
    change, matter = held.change, held.matter
    if change.base and (_digest(matter.base()) != change.base or not matter.teams() <= {*change.teams}):
        raise ChangeStale("What it changes is no longer what it was: withdraw it, and propose it again.")
    _decide(held.cursor, matter, by, ChangeOutcome.CONFIRMED, alone=alone, reason=reason)
    matter.apply(by)
    for team in concerned(change):
        dispatch.tighten(team)


def _decide(
    cursor: Cursor, matter: Matter, by: User, outcome: ChangeOutcome, *, alone: bool = False, reason: str = ""
) -> None:
    change = matter.change
    change.outcome, change.decided_by, change.decided_at = outcome, by, database_now()
    change.alone, change.reason = alone, reason
    change.save(update_fields=["outcome", "decided_by", "decided_at", "alone", "reason"])
    is_refusal = outcome == ChangeOutcome.WITHDRAWN and change.proposed_by_id != by.pk
    _record(cursor, matter, by, "confirmed alone" if alone else "refused" if is_refusal else outcome.value)


def _record(cursor: Cursor, matter: Matter, by: User, what: str) -> None:
    """Into the trail of every team concerned."""
    change = matter.change
    body = {"what": what, "kind": change.kind, "change": change.pk, "rule": change.body, "message": change.reason}
    audit.append_to_teams(cursor, concerned(change), type=matter.event, actor=Person(by).actor, body=body)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
