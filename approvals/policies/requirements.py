"""What it takes to decide: the effective policy of one approval, as a frozen value and as canonical text."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Self

from approvals import canonical
from approvals.states import Risk

RISKS = (Risk.LOW, Risk.MEDIUM, Risk.HIGH)

TEAM = "team"  # the reviewers of the approval's team


def group_pool(name: str) -> str:
    return f"group:{name}"


def person_pool(user_id: int) -> str:
    return f"person:{user_id}"


@dataclass(frozen=True, order=True)
class Seat:
    """`count` people out of any of `pools` must approve.

    A pool is `team`, `group:NAME` or `person:ID`. `policy` is the id of the policy that asks; 0 is the agent's own
    wish, which adds a requirement and makes nobody eligible.
    """

    policy: int
    pools: tuple[str, ...]
    count: int


@dataclass(frozen=True, order=True)
class Stage:
    """At the deadline, people of `pool` may fill `policy`'s seats too, for `lasts` more."""

    policy: int
    pool: str
    lasts: timedelta


@dataclass(frozen=True, order=True)
class PolicyRef:
    id: int
    version: int
    name: str


@dataclass(frozen=True)
class Requirements:
    """All of it must be met. `deadline` and `ends` count from the asking: when to escalate, and when to expire.

    `denied_by` names a policy that allows it to nobody.
    """

    policies: tuple[PolicyRef, ...]
    seats: tuple[Seat, ...]
    approvers: int
    rejections: int
    risk: Risk
    edits: bool
    reason: bool
    reauthentication: bool
    automatic: bool
    grant_life: timedelta
    deadline: timedelta | None
    ends: timedelta | None
    denied_by: str | None = None
    stages: tuple[Stage, ...] = ()
    escalated: tuple[Stage, ...] = ()

    @property
    def pools(self) -> frozenset[str]:
        """The pools whose people may vote."""
        return frozenset(pool for seat in self.seats if seat.policy for pool in seat.pools)

    @property
    def wanted(self) -> frozenset[str]:
        """The pools of which the agent itself asked for somebody."""
        return frozenset(pool for seat in self.seats if not seat.policy for pool in seat.pools)

    @property
    def one_suffices(self) -> bool:
        """Whether a single vote can meet every count."""
        return self.approvers == 1 and all(seat.count == 1 for seat in self.seats)

    def escalate(self, stage: Stage) -> Self:
        """The same with `stage` taken: its pool may fill the seats of its policy."""
        return replace(
            self,
            seats=tuple(
                replace(seat, pools=tuple(sorted({*seat.pools, stage.pool}))) if seat.policy == stage.policy else seat
                for seat in self.seats
            ),
            stages=tuple(other for other in self.stages if other != stage),
            escalated=(*self.escalated, stage),
        )

    def stricter(self, other: "Requirements") -> Self:
        """Both together. Deadlines stay: they were set when the approval was asked."""
        return replace(
            self,
            policies=tuple(sorted({*self.policies, *other.policies})),
            seats=merge_seats((*self.seats, *other.seats)),
            approvers=max(self.approvers, other.approvers),
            rejections=min(self.rejections, other.rejections),
            risk=max(self.risk, other.risk, key=RISKS.index),
            edits=self.edits and other.edits,
            reason=self.reason or other.reason,
            reauthentication=self.reauthentication or other.reauthentication,
            automatic=self.automatic and other.automatic,
            grant_life=min(self.grant_life, other.grant_life),
            denied_by=self.denied_by or other.denied_by,
        )

    def tightened_by(self, other: "Requirements") -> "Requirements":
        """Both together, or `self` where `other` asks for nothing more: a mere new version number changes nothing."""
        both = self.stricter(other)
        return self if replace(both, policies=self.policies) == self else both

    def to_text(self) -> str:
        return canonical.dumps(
            {
                "policies": [{"id": ref.id, "version": ref.version, "name": ref.name} for ref in self.policies],
                "seats": [
                    {"policy": seat.policy, "pools": list(seat.pools), "count": seat.count} for seat in self.seats
                ],
                "approvers": self.approvers,
                "rejections": self.rejections,
                "risk": self.risk.value,
                "edits": self.edits,
                "reason": self.reason,
                "reauthentication": self.reauthentication,
                "automatic": self.automatic,
                "grant_life": _seconds(self.grant_life),
                "deadline": _seconds(self.deadline),
                "ends": _seconds(self.ends),
                "denied_by": self.denied_by,
                "stages": [_stage_fields(stage) for stage in self.stages],
                "escalated": [_stage_fields(stage) for stage in self.escalated],
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Self:
        fields = canonical.parse(text)
        return cls(
            policies=tuple(PolicyRef(**ref) for ref in fields["policies"]),
            seats=tuple(
                Seat(policy=seat["policy"], pools=tuple(seat["pools"]), count=seat["count"]) for seat in fields["seats"]
            ),
            approvers=fields["approvers"],
            rejections=fields["rejections"],
            risk=Risk(fields["risk"]),
            edits=fields["edits"],
            reason=fields["reason"],
            reauthentication=fields["reauthentication"],
            automatic=fields["automatic"],
            grant_life=timedelta(seconds=fields["grant_life"]),
            deadline=_duration(fields["deadline"]),
            ends=_duration(fields["ends"]),
            denied_by=fields["denied_by"],
            stages=tuple(_stage(stage) for stage in fields["stages"]),
            escalated=tuple(_stage(stage) for stage in fields["escalated"]),
        )


def merge_seats(seats: Iterable[Seat]) -> tuple[Seat, ...]:
    """One seat for each policy and set of pools, with the highest count asked."""
    counts: dict[tuple[int, tuple[str, ...]], int] = {}
    for seat in seats:
        key = (seat.policy, seat.pools)
        counts[key] = max(seat.count, counts.get(key, 0))
    return tuple(sorted(Seat(policy, pools, count) for (policy, pools), count in counts.items()))


def _seconds(duration: timedelta | None) -> int | None:
    return None if duration is None else int(duration.total_seconds())


def _duration(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _stage_fields(stage: Stage) -> dict[str, Any]:
    return {"policy": stage.policy, "pool": stage.pool, "seconds": _seconds(stage.lasts)}


def _stage(fields: dict[str, Any]) -> Stage:
    return Stage(policy=fields["policy"], pool=fields["pool"], lasts=timedelta(seconds=fields["seconds"]))
