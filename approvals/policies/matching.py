"""Which policies apply to an action, and what they ask together. All that match apply; none is an exception."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self
from uuid import UUID

from django.db.models import F, OuterRef, Subquery

from approvals import canonical, schemas
from approvals.models import PolicyVersion
from approvals.policies.requirements import (
    RISKS,
    TEAM,
    PolicyRef,
    Requirements,
    Seat,
    Stage,
    group_pool,
    merge_seats,
    person_pool,
)
from approvals.states import Risk
from runs.hooks import Cursor

DEFAULT_GRANT_LIFE = timedelta(hours=24)

DENYING = """
SELECT p.name, a.name, v.agents, v.tools, v.condition, v.risk_at_least
FROM approvals_policy p
JOIN runs_agent a ON a.id = %s
JOIN LATERAL (SELECT * FROM approvals_policyversion WHERE policy_id = p.id ORDER BY number DESC LIMIT 1) v ON v.deny
WHERE p.team_id = %s AND p.is_active
ORDER BY p.name
"""


@dataclass(frozen=True)
class Asked:
    """What the agent itself wished for: it can only tighten. `groups` and `users` (ids) must approve besides."""

    risk: Risk
    groups: tuple[str, ...] = ()
    users: tuple[int, ...] = ()
    expires_in: timedelta | None = None
    grant_life: timedelta | None = None

    def to_text(self) -> str:
        return canonical.dumps(
            {
                "risk": self.risk.value,
                "groups": list(self.groups),
                "users": list(self.users),
                "expires_in": None if self.expires_in is None else int(self.expires_in.total_seconds()),
                "grant_life": None if self.grant_life is None else int(self.grant_life.total_seconds()),
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Self:
        fields = canonical.parse(text)
        return cls(
            risk=Risk(fields["risk"]),
            groups=tuple(fields["groups"]),
            users=tuple(fields["users"]),
            expires_in=None if fields["expires_in"] is None else timedelta(seconds=fields["expires_in"]),
            grant_life=None if fields["grant_life"] is None else timedelta(seconds=fields["grant_life"]),
        )


@dataclass(frozen=True)
class Rule:
    """One policy's newest version, as plain values."""

    ref: PolicyRef
    agents: frozenset[str]
    tools: tuple[str, ...]
    risk_at_least: Risk | None
    condition: str
    seats: tuple[Seat, ...]
    stages: tuple[Stage, ...]
    rejections: int
    risk: Risk | None
    edits: bool
    reason: bool
    reauthentication: bool
    automatic: bool
    deadline: timedelta | None
    minimum_deadline: timedelta | None
    grant_life: timedelta | None
    deny: bool

    def matches(self, *, agent: str, tool: str, args: str) -> bool:
        """Whether agent, tool and arguments match. A condition that cannot be evaluated counts as matched."""
        return _matches(self.agents, self.tools, self.condition, agent=agent, tool=tool, args=args)


def rules_of(team_id: int) -> tuple[Rule, ...]:
    """The active policies of a team, at their newest versions."""
    newest = PolicyVersion.objects.filter(policy=OuterRef("policy")).order_by("-number").values("number")[:1]
    versions = PolicyVersion.objects.filter(
        policy__team=team_id, policy__is_active=True, number=Subquery(newest)
    ).annotate(name=F("policy__name"))
    return tuple(_rule(version) for version in versions)


def required(rules: Sequence[Rule], *, agent: str, tool: str, args: str, asked: Asked) -> Requirements:
    """What the matching rules and the agent's own wish ask together. `args` is canonical JSON text."""
    candidates = [rule for rule in rules if rule.matches(agent=agent, tool=tool, args=args)]
    risk = asked.risk
    while True:  # a policy may raise the risk and so bring in another: at most one round for each level
        matched = [rule for rule in candidates if rule.risk_at_least is None or _at_least(risk, rule.risk_at_least)]
        raised = max([risk, *(rule.risk for rule in matched if rule.risk)], key=RISKS.index)
        if raised == risk:
            break
        risk = raised
    return _combined(matched, risk, asked)


def denied_by(cursor: Cursor, *, team_id: int, agent_id: UUID, tool: str, args: str, risk: Risk) -> str | None:
    """The name of a policy that denies the action now. Plain SQL, for the moment at which a grant is spent."""
    cursor.execute(DENYING, (agent_id, team_id))
    for name, agent, agents, tools, condition, level in cursor.fetchall():
        if (not level or _at_least(risk, Risk(level))) and _matches(
            agents, tools, condition, agent=agent, tool=tool, args=args
        ):
            return str(name)
    return None


def _combined(matched: Sequence[Rule], risk: Risk, asked: Asked) -> Requirements:
    seats = [seat for rule in matched for seat in rule.seats]
    if not seats:  # no policy at all must not mean no reviewer at all
        seats = [Seat(policy=-1, pools=(TEAM,), count=1)]
    seats += [Seat(policy=0, pools=(group_pool(name),), count=1) for name in asked.groups]
    seats += [Seat(policy=0, pools=(person_pool(user),), count=1) for user in asked.users]
    deadline, ends = _deadlines(matched, asked)
    lives = [life for life in (asked.grant_life, *(rule.grant_life for rule in matched)) if life is not None]
    return Requirements(
        policies=tuple(sorted(rule.ref for rule in matched)),
        seats=merge_seats(seats),
        approvers=1,
        rejections=min((rule.rejections for rule in matched), default=1),
        risk=risk,
        edits=all(rule.edits for rule in matched),
        reason=any(rule.reason for rule in matched),
        reauthentication=any(rule.reauthentication for rule in matched),
        automatic=bool(matched) and all(rule.automatic for rule in matched),
        grant_life=min(lives, default=DEFAULT_GRANT_LIFE),
        deadline=deadline,
        ends=ends,
        denied_by=next((rule.ref.name for rule in matched if rule.deny), None),
        stages=tuple(stage for rule in matched for stage in rule.stages),
    )


def _deadlines(matched: Sequence[Rule], asked: Asked) -> tuple[timedelta | None, timedelta | None]:
    """When to act first, and when it is over: by the agent's wish, or by a policy that does not escalate."""
    floor = max((rule.minimum_deadline for rule in matched if rule.minimum_deadline), default=timedelta(0))
    final = [rule.deadline for rule in matched if rule.deadline and not rule.stages]
    if asked.expires_in is not None:
        final.append(max(asked.expires_in, floor))
    first = [rule.deadline for rule in matched if rule.deadline and rule.stages]
    return min(final + first, default=None), min(final, default=None)


def _rule(version: PolicyVersion) -> Rule:
    policy = version.policy_id
    return Rule(
        ref=PolicyRef(id=policy, version=version.number, name=version.name),  # type: ignore[attr-defined]
        agents=frozenset(version.agents),
        tools=tuple(version.tools),
        risk_at_least=Risk(version.risk_at_least) if version.risk_at_least else None,
        condition=version.condition,
        seats=tuple(
            Seat(
                policy=policy,
                pools=(TEAM if part["group"] is None else group_pool(part["group"]),),
                count=part["count"],
            )
            for part in canonical.parse(version.quorum)
        ),
        stages=tuple(
            Stage(policy=policy, pool=group_pool(part["group"]), lasts=timedelta(seconds=part["seconds"]))
            for part in canonical.parse(version.escalation)
        ),
        rejections=version.rejections,
        risk=Risk(version.risk) if version.risk else None,
        edits=version.allow_edits,
        reason=version.require_reason,
        reauthentication=version.require_reauthentication,
        automatic=version.allow_automatic,
        deadline=version.deadline,
        minimum_deadline=version.minimum_deadline,
        grant_life=version.grant_life,
        deny=version.deny,
    )


def _matches(
    agents: Collection[str], tools: Iterable[str], condition: str, *, agent: str, tool: str, args: str
) -> bool:
    tools = tuple(tools)
    return (
        (not agents or agent in agents)
        and (not tools or any(tool_matches(pattern, tool) for pattern in tools))
        and (not condition or _holds(condition, args))
    )


def tool_matches(pattern: str, tool: str) -> bool:
    """Whether a tool's name is `pattern`, or begins with it where it ends in *. Case does not matter."""
    pattern = pattern.casefold()
    name = tool.casefold()
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _holds(condition: str, args: str) -> bool:
    try:
        return schemas.fits(args, condition)
    except schemas.TooMuchWork:
        return True


def _at_least(risk: Risk, level: Risk) -> bool:
    return RISKS.index(risk) >= RISKS.index(level)


def second_approver(requirements: Requirements) -> Requirements:
    """The same with two people who must approve: for what was rejected not long ago."""
    return replace(requirements, approvers=max(requirements.approvers, 2), automatic=False)
