"""Standing in: for a while, one person may vote for another.

It never opens a way around the rule that whoever asked does not decide: see `approvals.policies.eligibility`. Who
confirms it, and that every refusal is on record, is as for any change that takes two: see `approvals.services.changes`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.contrib.auth.models import User

from approvals import audit
from approvals.audit import EventType
from approvals.errors import DelegationRefused
from approvals.models import Delegation
from approvals.queries.confirmers import administrators_of, confirmers_of
from approvals.queries.guarded import teams_lent_by
from approvals.services.deciding import retry_deadlocks
from approvals.services.refusing import attempting
from runs.clock import database_now
from runs.hooks import Cursor
from runs.principals import Person
from runs.queries import teams_of

LONGEST = timedelta(days=90)

# Two people who delegate to each other at once must not both find the way free.
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('approvals.delegation'))"
LEADS_BACK = """
WITH RECURSIVE standing_in (person) AS (
    SELECT %(taker)s::bigint
    UNION
    SELECT d.taker_id FROM approvals_delegation d JOIN standing_in s ON d.giver_id = s.person
    WHERE d.revoked_at IS NULL AND d.starts_at < %(ends)s AND d.ends_at > %(starts)s
)
SELECT 1 FROM standing_in WHERE person = %(giver)s
"""


@retry_deadlocks
def delegate(*, giver: User, taker: User, starts_at: datetime, ends_at: datetime, by: User) -> Delegation:
    """Let `taker` vote for `giver` between two moments (aware). `by` is the giver, or an administrator of their team:
    then it counts only once another administrator has confirmed it.

    Raises `DelegationRefused`: by somebody else, to oneself, backwards or too long, to somebody without an account or a
    team in common, or in a circle.
    """
    now, teams = database_now(), _teams(giver)
    if giver == taker:
        raise DelegationRefused("Nobody can stand in for themselves.")
    if not max(starts_at, now) < ends_at <= max(starts_at, now) + LONGEST:
        raise DelegationRefused(f"It must end later than it starts and than now, and within {LONGEST.days} days.")
    with attempting(by=by, attempt="arrange a delegation", teams=teams, giver=giver.pk, taker=taker.pk) as cursor:
        cursor.execute(ONE_AT_A_TIME)
        if by != giver and not _administers(by, teams):
            raise DelegationRefused("Only you yourself, or an administrator of your team, can give your vote away.")
        if not taker.is_active or teams.isdisjoint(_teams(taker)):
            raise DelegationRefused("Only somebody of the same team can stand in.")
        cursor.execute(LEADS_BACK, {"taker": taker.pk, "giver": giver.pk, "starts": starts_at, "ends": ends_at})
        if cursor.fetchone() is not None:
            raise DelegationRefused("That would lead back to the person whose vote it is.")
        made = Delegation.objects.create(
            giver=giver, taker=taker, starts_at=starts_at, ends_at=ends_at, created_by=by, created_at=now
        )
        _record(cursor, made, by, "given")
    return made


@retry_deadlocks
def confirm_delegation(*, delegation_id: int, by: User) -> Delegation:
    """Let it count, for high risk too, as another administrator or a superuser who is neither of the two.

    Raises `Delegation.DoesNotExist`, `DelegationRefused`.
    """
    with _deciding(delegation_id, by, "confirm") as (cursor, given):
        if why := confirmers_of(given).why_not(by.pk):
            raise DelegationRefused(why)
        if given.revoked_at is not None:
            raise DelegationRefused("It has been taken back.")
        if given.confirmed_by_id is None:
            given.confirmed_by = by
            given.save(update_fields=["confirmed_by"])
            _record(cursor, given, by, "confirmed")
    return given


@retry_deadlocks
def revoke_delegation(*, delegation_id: int, by: User) -> Delegation:
    """End it now: the giver, the taker, an administrator of the giver's team, or who might confirm it. Again: nothing
    changes.

    Votes that only it carried no longer count, unless they are settled. Raises `Delegation.DoesNotExist`,
    `DelegationRefused`.
    """
    with _deciding(delegation_id, by, "end") as (cursor, given):
        is_own = by.pk in (given.giver_id, given.taker_id)
        if not (is_own or _administers(by, _teams(given.giver)) or confirmers_of(given).takes_part(by.pk)):
            raise DelegationRefused("Only the two people, an administrator of their team or a superuser can end it.")
        if given.revoked_at is None:
            given.revoked_at = database_now()
            given.save(update_fields=["revoked_at"])
            _record(cursor, given, by, "revoked")
    return given


@contextmanager
def _deciding(delegation_id: int, by: User, attempt: str) -> Iterator[tuple[Cursor, Delegation]]:
    given = Delegation.objects.select_related("giver").get(pk=delegation_id)
    attempt, teams = f"{attempt} a delegation", _told(given)
    with attempting(by=by, attempt=attempt, teams=teams, delegation=delegation_id) as cursor:
        yield cursor, Delegation.objects.select_for_update(no_key=True).get(pk=delegation_id)


def _teams(person: User) -> frozenset[int]:
    return frozenset(teams_of(Person(person)))


def _told(given: Delegation) -> frozenset[int]:
    """The teams in whose trails it is: the giver's, and those whose high risk it touches."""
    return _teams(given.giver) | teams_lent_by(given.giver)


def _administers(person: User, teams: frozenset[int]) -> bool:
    return any(person.pk in admins for admins in administrators_of(teams).values())


def _record(cursor: Cursor, given: Delegation, by: User, what: str) -> None:
    audit.append_to_teams(
        cursor,
        _told(given),
        type=EventType.DELEGATION_CHANGED,
        actor=Person(by).actor,
        person_id=given.giver_id,
        body={
            "what": what,
            "delegation": given.pk,
            "giver": given.giver_id,
            "taker": given.taker_id,
            "starts_at": given.starts_at.isoformat(),
            "ends_at": given.ends_at.isoformat(),
        },
    )
