"""The people, groups and agents of a team, as its administrators see them; all but the people, as others read them."""

from dataclasses import dataclass
from datetime import datetime

from approvals.presentation.changes import called
from approvals.presentation.webhooks import WebhookLine, webhook_line
from approvals.queries.people import agents_of, groups_around, members_of
from approvals.queries.rules import open_changes_of
from runs.models import Agent, AgentKey, Role, Team


@dataclass(frozen=True, slots=True)
class PersonLine:
    id: int
    username: str
    name: str
    roles: str
    groups: str
    since: datetime
    is_active: bool


@dataclass(frozen=True, slots=True)
class GroupLine:
    """`decides`: a policy in force names it."""

    name: str
    people: str
    decides: bool


@dataclass(frozen=True, slots=True)
class AgentLine:
    agent: Agent
    owners: str
    keys: list[AgentKey]
    webhook: WebhookLine | None


@dataclass(frozen=True, slots=True)
class TeamPeople:
    """`people` are for those who `may_change` them; the rest is for who only reads, too."""

    team: Team
    may_change: bool
    people: list[PersonLine]
    groups: list[GroupLine]
    agents: list[AgentLine]
    waiting: int


def team_people(team: Team, *, may_change: bool) -> TeamPeople:
    groups, deciding = groups_around(team)
    return TeamPeople(
        team=team,
        may_change=may_change,
        people=[
            PersonLine(
                id=each.user.pk,
                username=each.user.username,
                name=called(each.user),
                roles=", ".join(role.label.lower() for role in Role if role in each.roles),
                groups=", ".join(sorted(group.name for group in each.user.groups.all())),
                since=each.since,
                is_active=each.user.is_active,
            )
            for each in members_of(team)
        ]
        if may_change
        else [],
        groups=[
            GroupLine(
                name=group.name,
                people=", ".join(called(user) for user in group.people) or "nobody",  # type: ignore[attr-defined]
                decides=group.name in deciding,
            )
            for group in groups
        ],
        agents=[
            AgentLine(
                agent=agent,
                owners=", ".join(called(user) for user in agent.owners.all()) or "nobody",
                keys=agent.living_keys,  # type: ignore[attr-defined]
                webhook=webhook_line(agent),
            )
            for agent in agents_of(team)
        ],
        waiting=open_changes_of(team).count(),
    )
