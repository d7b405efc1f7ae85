"""Who is asking. Every query and every service that checks a right takes one of these."""

from dataclasses import dataclass
from typing import ClassVar

from django.contrib.auth.models import User

from runs.models import Agent, AgentKey, PersonalToken


@dataclass(frozen=True)
class Person:
    """`token`: the personal token that speaks for them, if it is not they themselves."""

    user: User
    token: PersonalToken | None = None
    is_authenticated: ClassVar[bool] = True

    @property
    def actor(self) -> str:
        """As the audit trail names it."""
        return f"person:{self.user.pk}"


@dataclass(frozen=True)
class AgentPrincipal:
    """An agent, by one of its keys. What it may do is what the key's scopes say."""

    agent: Agent
    key: AgentKey
    is_authenticated: ClassVar[bool] = True

    @property
    def actor(self) -> str:
        """As the audit trail names it."""
        return f"agent:{self.agent.pk}"

    def may(self, scope: str) -> bool:
        """Whether the key has `scope`; `workflow:*` stands for every `workflow:NAME`."""
        family, _, name = scope.partition(":")
        return scope in self.key.scopes or (family == "workflow" and bool(name) and "workflow:*" in self.key.scopes)


Principal = Person | AgentPrincipal
