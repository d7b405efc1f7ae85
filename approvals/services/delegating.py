"""Standing in: for a while, one person may vote for another.

It never opens a way around the rule that whoever asked does not decide: see `approvals.policies.eligibility`.
"""

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import connection, transaction

from approvals import audit
from approvals.audit import EventType
from approvals.errors import DelegationRefused
from approvals.models import Delegation
from runs.clock import database_now
from runs.hooks import Cursor
from runs.models import Membership, Role
from runs.principals import Person

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


def delegate(*, giver: User, taker: User, starts_at: datetime, ends_at: datetime, by: User) -> Delegation:
    """Let `taker` vote for `giver` between two moments (aware). `by` is the giver, or an administrator of their team:
    then it counts only once another administrator has confirmed it.

    Raises `DelegationRefused`: by somebody else, to oneself, backwards or too long, to somebody without an account or a
    team in common, or in a circle.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        cursor.execute(ONE_AT_A_TIME)
        now = database_now()
        teams = _teams(giver)
        if by != giver and not _administers(by, teams):
            raise DelegationRefused("Only you yourself, or an administrator of your team, can give your vote away.")
        if giver == taker:
            raise DelegationRefused("Nobody can stand in for themselves.")
        if not max(starts_at, now) < ends_at <= max(starts_at, now) + LONGEST:
            raise DelegationRefused(f"It must end later than it starts and than now, and within {LONGEST.days} days.")
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


def confirm_delegation(*, delegation_id: int, by: User) -> Delegation:
    """Let it count, for high risk too. `by` administers a team of the giver and is neither of the two, nor its maker.

    Raises `Delegation.DoesNotExist`, `DelegationRefused`.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        given = Delegation.objects.select_for_update(no_key=True).get(pk=delegation_id)
        if by.pk in (given.giver_id, given.taker_id, given.created_by_id) or not _administers(by, _teams(given.giver)):
            raise DelegationRefused("An administrator of the team who has no part in it must confirm it.")
        if given.revoked_at is not None:
            raise DelegationRefused("It has been taken back.")
        if given.confirmed_by_id is None:
            given.confirmed_by = by
            given.save(update_fields=["confirmed_by"])
            _record(cursor, given, by, "confirmed")
    return given


def revoke_delegation(*, delegation_id: int, by: User) -> Delegation:
    """End it now: the giver, the taker, or an administrator of the giver's team. Again: nothing changes.

    Votes that only it carried no longer count, unless they are settled. Raises `Delegation.DoesNotExist`,
    `DelegationRefused`.
    """
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        given = Delegation.objects.select_for_update(no_key=True).get(pk=delegation_id)
        if by.pk not in (given.giver_id, given.taker_id) and not _administers(by, _teams(given.giver)):
            raise DelegationRefused("Only the two people and an administrator of their team can end it.")
        if given.revoked_at is None:
            given.revoked_at = database_now()
            given.save(update_fields=["revoked_at"])
            _record(cursor, given, by, "revoked")
    return given


def _teams(person: User) -> frozenset[int]:
    return frozenset(Membership.objects.filter(user=person).values_list("team_id", flat=True))


def _administers(person: User, teams: frozenset[int]) -> bool:
    return Membership.objects.filter(user=person, team__in=teams, roles__contains=[Role.ADMIN]).exists()


def _record(cursor: Cursor, given: Delegation, by: User, what: str) -> None:
    for team in sorted(_teams(given.giver)):
        audit.append(
            cursor,
            chain=f"team:{team}",
            type=EventType.DELEGATION_CHANGED,
            actor=Person(by).actor,
            team_id=team,
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
