"""Who may vote on an approval, and whose votes count. Rights are read afresh each time: only today's count."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib.auth.models import Group, User
from django.db.models import F

from approvals.models import Approval, Delegation, Vote
from approvals.policies.requirements import TEAM, Requirements, Seat, group_pool, person_pool
from approvals.states import Risk, Verdict
from runs.models import Agent, Membership, Role, Run

NO_POOLS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Electorate:
    """The rights that some people have on one approval at one moment.

    `pools` holds what each active person is in; `givers` who delegated to a person; `requesters` who may never vote.
    """

    requirements: Requirements
    requesters: frozenset[int]
    pools: dict[int, frozenset[str]]
    givers: dict[int, tuple[int, ...]]

    def why_not(self, person: int) -> str:
        """Why the person may not vote, as a sentence to them; empty when they may."""
        if person not in self.pools:
            return "Your account is not active."
        if person in self.requesters:
            return "You asked for this run or answer for its agent: somebody else must decide."
        if not self.requesters.isdisjoint(self.givers.get(person, ())):
            return "You stand in for somebody who asked for this run: somebody else must decide."
        if not self.holds_seat(person) and self.seat_lent_to(person) is None:
            return f"Only {describe(self.requirements.pools)} can decide this."
        return ""

    def holds_seat(self, person: int) -> bool:
        """Whether the person is in a pool that a policy names (a pool that only the agent names gives no right)."""
        return person not in self.requesters and not self.pools.get(person, NO_POOLS).isdisjoint(
            self.requirements.pools
        )

    def seat_lent_to(self, person: int) -> int | None:
        """Somebody with a seat for whom the person may vote."""
        return next((giver for giver in self.givers.get(person, ()) if self.holds_seat(giver)), None)

    def counts(self, vote: Vote) -> bool:
        """Whether the vote counts by today's rights."""
        if self.why_not(vote.voter_id):
            return False
        if vote.on_behalf_of_id is None:
            return self.holds_seat(vote.voter_id)
        return vote.on_behalf_of_id in self.givers.get(vote.voter_id, ()) and self.holds_seat(vote.on_behalf_of_id)

    def fills(self, seat: Seat, people: Iterable[int]) -> bool:
        """Whether a vote of `people` (a voter, and for whom) counts for the seat: once, whoever of them is in it."""
        return any(not self.pools.get(person, NO_POOLS).isdisjoint(seat.pools) for person in people)

    def decides_alone(self, people: Collection[int]) -> bool:
        """Whether one vote that fills the seats of `people` meets everything."""
        return self.requirements.one_suffices and all(self.fills(seat, people) for seat in self.requirements.seats)


def electorate(approval: Approval, *, requirements: Requirements, people: Collection[int], at: datetime) -> Electorate:
    """Read the rights of `people` (user ids), and of those who delegated to them, at the moment `at`."""
    givers: dict[int, tuple[int, ...]] = {}
    for taker, giver in (
        Delegation.objects.filter(taker__in=people, starts_at__lte=at, ends_at__gt=at, revoked_at__isnull=True)
        .order_by("id")
        .values_list("taker_id", "giver_id")
    ):
        givers[taker] = (*givers.get(taker, ()), giver)
    everybody = {*people, *(giver for each in givers.values() for giver in each)}
    return Electorate(
        requirements=requirements,
        requesters=requesters_of(approval),
        pools=_pools(everybody, team_id=approval.team_id),
        givers=givers,
    )


def requesters_of(approval: Approval) -> frozenset[int]:
    """The agent's owners, the creator of the key that the run came by, and who started, retried or forked it."""
    owners = Agent.owners.through.objects.filter(agent=approval.agent_id).values_list("user_id")
    starters = Run.requesters.through.objects.filter(run=approval.run_id).values_list("user_id")
    creator = Run.objects.filter(pk=approval.run_id, key__created_by__isnull=False).values_list("key__created_by")
    return frozenset(user for (user,) in owners.union(starters, creator))


@dataclass(frozen=True)
class Tally:
    """How the votes stand. `missing` holds the unmet seats, with how many are still wanted; `more` people besides."""

    approving: tuple[Vote, ...]
    rejecting: tuple[Vote, ...]
    responding: tuple[Vote, ...]
    missing: tuple[Seat, ...]
    more: int

    @property
    def is_met(self) -> bool:
        return not self.missing and self.more <= 0


def tally(voters: Electorate, votes: Iterable[Vote]) -> Tally:
    """Count the votes on the current revision that count today.

    For high risk the editor's own approval does not count: somebody else must have seen the edited action.
    """
    needs = voters.requirements
    counted = [vote for vote in votes if voters.counts(vote)]
    agreeing = (Verdict.APPROVE,) if needs.risk == Risk.HIGH else (Verdict.APPROVE, Verdict.EDIT)
    approving = tuple(vote for vote in counted if vote.verdict in agreeing)
    wanted = (
        replace(seat, count=seat.count - sum(voters.fills(seat, people_of(vote)) for vote in approving))
        for seat in needs.seats
    )
    return Tally(
        approving=approving,
        rejecting=tuple(vote for vote in counted if vote.verdict == Verdict.REJECT),
        responding=tuple(
            vote for vote in counted if vote.verdict == Verdict.RESPOND and voters.decides_alone(people_of(vote))
        ),
        missing=tuple(seat for seat in wanted if seat.count > 0),
        more=max(0, needs.approvers - len(approving)),
    )


def people_of(vote: Vote) -> tuple[int, ...]:
    """Whose seats the vote fills: the voter's, and those of whom they voted for."""
    return (vote.voter_id,) if vote.on_behalf_of_id is None else (vote.voter_id, vote.on_behalf_of_id)


def describe(pools: Collection[str]) -> str:
    """Pools for people to read: `the team's reviewers or finance`."""
    ids = [pool.removeprefix("person:") for pool in pools if pool.startswith("person:")]
    people = {
        person_pool(user.pk): user.get_full_name() or user.get_username() for user in User.objects.filter(pk__in=ids)
    }
    words = {TEAM: "the team's reviewers", **people}
    return " or ".join(words.get(pool, pool.partition(":")[2]) for pool in sorted(pools))


def _pools(people: Collection[int], *, team_id: int) -> dict[int, frozenset[str]]:
    active = set(User.objects.filter(pk__in=people, is_active=True).values_list("pk", flat=True))
    pools = {person: {person_pool(person)} for person in active}
    reviewers = Membership.objects.filter(user__in=active, team=team_id, roles__contains=[Role.REVIEWER])
    for person in reviewers.values_list("user_id", flat=True):
        pools[person].add(TEAM)
    memberships = Group.objects.filter(user__in=active).annotate(person=F("user")).values_list("person", "name")
    for person, name in memberships:
        pools[person].add(group_pool(name))
    return {person: frozenset(names) for person, names in pools.items()}
