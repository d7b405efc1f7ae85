"""Registering agents, and the keys that they sign in with."""

import hashlib
import secrets
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from runs.errors import RunError
from runs.models import Agent, AgentKey, Scope, Team

EVERYTHING = (*Scope.values, "workflow:*")
_PREFIX_LETTERS = string.ascii_lowercase + string.digits


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
    owners: Iterable[User] = (),
    scopes: Sequence[str] = EVERYTHING,
    created_by: User | None = None,
) -> tuple[Agent, IssuedKey]:
    """Register an agent with one key. Raises `AgentExists` and `UnknownScope`."""
    try:
        with transaction.atomic():
            agent = Agent.objects.create(name=name, team=team, target=target)
    except IntegrityError as error:
        raise AgentExists(name=name, team=team.name) from error
    agent.owners.set(owners)
    return agent, issue_key(agent=agent, scopes=scopes, created_by=created_by)


def issue_key(
    *,
    agent: Agent,
    scopes: Sequence[str] = EVERYTHING,
    created_by: User | None = None,
    expires_at: datetime | None = None,
) -> IssuedKey:
    """Make a key. Raises `UnknownScope`."""
    for scope in scopes:
        family, _, workflow = scope.partition(":")
        if scope not in Scope.values and not (family == "workflow" and workflow):
            raise UnknownScope(scope)
    prefix = "".join(secrets.choice(_PREFIX_LETTERS) for _ in range(12))
    text = f"fmt_{prefix}_{secrets.token_urlsafe(32)}"
    key = AgentKey.objects.create(
        agent=agent,
        prefix=prefix,
        digest=hashlib.sha256(text.encode()).digest(),
        scopes=list(scopes),
        created_by=created_by,
        expires_at=expires_at,
    )
    return IssuedKey(key=key, text=text)


@transaction.atomic
def rotate_key(*, key: AgentKey, retire_at: datetime, created_by: User | None = None) -> IssuedKey:
    """A new key with the same scopes; the old one stops working at `retire_at`, or earlier if it was to expire."""
    issued = issue_key(agent=key.agent, scopes=key.scopes, created_by=created_by, expires_at=key.expires_at)
    AgentKey.objects.filter(pk=key.pk).exclude(expires_at__lt=retire_at).update(expires_at=retire_at)
    return issued


def revoke_key(*, key: AgentKey) -> None:
    """Stop a key at once. Revoking it again changes nothing."""
    AgentKey.objects.filter(pk=key.pk, revoked_at__isnull=True).update(revoked_at=Now())
