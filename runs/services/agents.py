"""Registering agents, and the keys that they sign in with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from runs.clock import DatabaseNow
from runs.errors import RunError
from runs.models import Agent, AgentKey, OnCredentials, Scope, Team
from runs.services.drawing import Drawn, draw
from runs.services.recording import actor_of, record_change

EVERYTHING = (*Scope.values, "workflow:*")


@dataclass(frozen=True)
class IssuedKey:
    """A key just made. `text` is shown once and kept nowhere."""

    key: AgentKey
    text: str


@dataclass
class AgentExists(RunError):
    name: str
    team: str

    def __str__(self) -> str:
        return f"team {self.team!r} already has an agent named {self.name!r}"


@dataclass
class UnknownScope(RunError):
    scope: str

    def __str__(self) -> str:
        return f"there is no scope {self.scope!r}; known: {', '.join(Scope.values)}, workflow:NAME, workflow:*"


@transaction.atomic
def create_agent(
    *,
    name: str,
    team: Team,
    target: str = "",
    on_credentials: str = OnCredentials.REFUSE,
    owners: Sequence[User] = (),
    scopes: Sequence[str] = EVERYTHING,
    created_by: User | None = None,
) -> tuple[Agent, IssuedKey]:
    """Register an agent with one key. Raises `AgentExists` and `UnknownScope`."""
    try:
        with transaction.atomic():
            agent = Agent.objects.create(name=name, team=team, target=target, on_credentials=on_credentials)
    except IntegrityError as error:
        raise AgentExists(name=name, team=team.name) from error
    agent.owners.set(owners)
    facts = {
        "name": name,
        "target": target,
        "on_credentials": str(on_credentials),
        "owners": [owner.pk for owner in owners],
    }
    _record(agent, "agent.changed", created_by, facts)
    return agent, issue_key(agent=agent, scopes=scopes, created_by=created_by)


@transaction.atomic
def set_on_credentials(*, agent: Agent, on_credentials: OnCredentials, by: User | None = None) -> bool:
    """Say what becomes of what this agent posts with a credential in it. False: that is how it was."""
    before = Agent.objects.select_for_update(no_key=True).values_list("on_credentials", flat=True).get(pk=agent.pk)
    if before == on_credentials:
        return False
    Agent.objects.filter(pk=agent.pk).update(on_credentials=on_credentials)
    facts = {"on_credentials": str(on_credentials), "on_credentials_before": before}
    _record(agent, "agent.changed", by, facts)
    return True


@transaction.atomic
def issue_key(
    *,
    agent: Agent,
    scopes: Sequence[str] = EVERYTHING,
    created_by: User | None = None,
    expires_at: datetime | None = None,
) -> IssuedKey:
    """Make a key. Raises `UnknownScope`."""
    drawn = draw_key()
    key = add_key(
        agent=agent,
        prefix=drawn.prefix,
        digest=drawn.digest,
        scopes=scopes,
        created_by=created_by,
        expires_at=expires_at,
        by=created_by,
    )
    return IssuedKey(key=key, text=drawn.text)


def draw_key() -> Drawn:
    """A key, which works once it is added."""
    return draw("fmt")


def check_scopes(scopes: Sequence[str]) -> None:
    """Raises `UnknownScope`."""
    for scope in scopes:
        family, _, workflow = scope.partition(":")
        if scope not in Scope.values and not (family == "workflow" and workflow):
            raise UnknownScope(scope)


@transaction.atomic
def add_key(
    *,
    agent: Agent,
    prefix: str,
    digest: bytes,
    scopes: Sequence[str],
    created_by: User | None,
    expires_at: datetime | None,
    by: User | None,
) -> AgentKey:
    """Let a drawn key work. `created_by` has its text; `by` lets it work. Raises `UnknownScope`."""
    check_scopes(scopes)
    key = AgentKey.objects.create(
        agent=agent, prefix=prefix, digest=digest, scopes=list(scopes), created_by=created_by, expires_at=expires_at
    )
    facts = {"prefix": prefix, "scopes": list(scopes), "expires_at": _text(expires_at)}
    _record(agent, "key.created", by, facts)
    return key


@transaction.atomic
def change_agent(*, agent: Agent, owners: Sequence[int], team: Team, by: User) -> None:
    """Give an agent exactly these owners (ids), and this team. What it runs already stays where it is.

    Raises `AgentExists`.
    """
    if Agent.objects.filter(team=team, name=agent.name).exclude(pk=agent.pk).exists():
        raise AgentExists(name=agent.name, team=team.name)
    before = {"owners_before": sorted(agent.owners.values_list("pk", flat=True)), "team_before": agent.team_id}
    facts = {"agent": str(agent.pk), "name": agent.name, "owners": sorted(owners), "team": team.pk, **before}
    record_change(teams={agent.team_id, team.pk}, type="agent.changed", actor=actor_of(by), facts=facts)
    agent.team = team
    agent.save(update_fields=["team"])
    agent.owners.set(owners)


@transaction.atomic
def rotate_key(*, key: AgentKey, retire_at: datetime, by: User | None = None) -> IssuedKey:
    """A new key with the same scopes; the old one stops working at `retire_at`, or earlier if it was to expire."""
    issued = issue_key(agent=key.agent, scopes=key.scopes, created_by=by, expires_at=key.expires_at)
    AgentKey.objects.filter(pk=key.pk).exclude(expires_at__lt=retire_at).update(expires_at=retire_at)
    facts = {"prefix": key.prefix, "at": _text(retire_at), "successor": issued.key.prefix}
    _record(key.agent, "key.revoked", by, facts)
    return issued


@transaction.atomic
def revoke_key(*, key: AgentKey, by: User | None = None) -> None:
    """Stop a key at once. Revoking it again changes nothing."""
    if AgentKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=DatabaseNow()):
        _record(key.agent, "key.revoked", by, {"prefix": key.prefix})


def _record(agent: Agent, event: str, by: User | None, facts: dict[str, Any]) -> None:
    record_change(teams=[agent.team_id], type=event, actor=actor_of(by), facts={"agent": str(agent.pk), **facts})


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
