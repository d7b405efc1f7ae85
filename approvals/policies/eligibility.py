"""Who may vote on an approval, and whose votes count. Rights are read afresh each time: only today's count."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib.auth.models import User

from approvals.models import Approval, Delegation, PoolEntry, Vote
from approvals.policies.probation import NOTHING_NEW, Probation, too_new
from approvals.policies.requirements import TEAM, Requirements, Seat, group_pool, person_pool
from approvals.states import Risk, Verdict
from runs.models import Agent, Membership, Role, Run

NO_POOLS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Electorate:
    """The rights that some people have on one approval at one moment.

    `pools` holds what each active person is in, as far as it counts, and `fresh` what is too new for high risk;
    `delegations` who gave each person their vote; `requesters` who may never vote.
    """

    requirements: Requirements
    requesters: frozenset[int]
    pools: dict[int, frozenset[str]]
    fresh: Probation
    delegations: tuple[Delegation, ...]

    def why_not(self, person: int) -> str:
        """Why the person may not vote, as a sentence to them; empty when they may."""
        if person not in self.pools:
            return "Your account is not active."
        if person in self.requesters:
            return "You asked for this run or answer for its agent: somebody else must decide."
        if any(given.giver_id in self.requesters for given in self.delegations if given.taker_id == person):
            return "You stand in for somebody who asked for this run: somebody else must decide."
        if self.holds_seat(person) or self.seat_lent_to(person) is not None:
            # Of a stand-in: for one's own seats the password has been waited for already.
            return str(self.fresh.passwords.get(person, ""))
        fresh = self.fresh.pools.get(person, {})
        if waiting := [fresh[pool] for pool in self.requirements.pools if pool in fresh]:
            return str(min(waiting, key=lambda each: each.counts_from))
        return f"Only {describe(self.requirements.pools)} can decide this."

    def givers(self, person: int) -> tuple[int, ...]:
        """For whom the person may vote here. For high risk, a delegation needs an administrator's confirmation."""
        high = self.requirements.risk == Risk.HIGH
        return tuple(
            given.giver_id
            for given in self.delegations
            if given.taker_id == person and (given.confirmed_by_id is not None or not high)
        )

    def holds_seat(self, person: int) -> bool:
        """Whether the person is in a pool that a policy names (a pool that only the agent names gives no right)."""
        return person not in self.requesters and not self.pools.get(person, NO_POOLS).isdisjoint(
            self.requirements.pools
        )

    def seat_lent_to(self, person: int) -> int | None:
        """Somebody with a seat for whom the person may vote."""
        return next((giver for giver in self.givers(person) if self.holds_seat(giver)), None)

    def counts(self, vote: Vote) -> bool:
        """Whether the vote counts by today's rights."""
        if self.why_not(vote.voter_id) or (vote.by_token and self.requirements.risk == Risk.HIGH):
            return False
        if vote.on_behalf_of_id is None:
            return self.holds_seat(vote.voter_id)
        return vote.on_behalf_of_id in self.givers(vote.voter_id) and self.holds_seat(vote.on_behalf_of_id)

    def fills(self, seat: Seat, people: Iterable[int]) -> bool:
        """Whether a vote of `people` (a voter, and for whom) counts for the seat: once, whoever of them is in it."""
        return any(not self.pools.get(person, NO_POOLS).isdisjoint(seat.pools) for person in people)

    def decides_alone(self, people: Collection[int]) -> bool:
        """Whether one vote that fills the seats of `people` meets everything."""
        return self.requirements.one_suffices and all(self.fills(seat, people) for seat in self.requirements.seats)


def electorate(approval: Approval, *, requirements: Requirements, people: Collection[int], at: datetime) -> Electorate:
    """Read the rights of `people` (user ids), and of those who delegated to them, at the moment `at`."""
    delegations = tuple(
        Delegation.objects.filter(
            Delegation.COUNTS, taker__in=people, starts_at__lte=at, ends_at__gt=at, revoked_at__isnull=True
        ).order_by("id")
    )
    everybody = {*people, *(given.giver_id for given in delegations)}
    entries = _entries(everybody, team_id=approval.team_id)
    fresh = too_new(entries, at) if requirements.risk == Risk.HIGH else NOTHING_NEW
    return Electorate(
        requirements=requirements,
        requesters=requesters_of(approval),
        pools={user: frozenset(pools.keys() - fresh.pools.get(user, {}).keys()) for user, pools in entries.items()},
        fresh=fresh,
        delegations=delegations,
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


def _entries(people: Collection[int], *, team_id: int) -> dict[int, dict[str, datetime]]:
    """For each active person, the pools that they are in, with the time since when."""
    users = User.objects.filter(pk__in=people, is_active=True).values_list("pk", "date_joined")
    entries = {user: {person_pool(user): joined} for user, joined in users}
    reviewers = Membership.objects.filter(user__in=entries, team=team_id, roles__contains=[Role.REVIEWER])
    for user, since in reviewers.values_list("user_id", "since"):
        entries[user][TEAM] = since
    members = PoolEntry.objects.filter(user__in=entries).values_list("user_id", "group__name", "since")
    for user, name, since in members:
        entries[user][group_pool(name)] = since
    return entries
