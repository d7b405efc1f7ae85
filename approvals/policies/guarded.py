"""What is to become of people, groups and agents, before anybody confirmed it: as values, and as text."""

from dataclasses import dataclass

from approvals.policies.drafts import Draft


@dataclass(frozen=True)
class GroupDraft(Draft):
    """People (ids) who join or leave a group."""

    group: str
    add: tuple[int, ...] = ()
    remove: tuple[int, ...] = ()


@dataclass(frozen=True)
class MembershipDraft(Draft):
    """The roles that a person is to have in the team, and had; none: they leave it."""

    person: int
    roles: tuple[str, ...]
    was: tuple[str, ...]


@dataclass(frozen=True)
class AgentDraft(Draft):
    """Whose an agent (UUID text) is to be: owners and team (ids), and whose it was."""

    agent: str
    owners: tuple[int, ...]
    owners_were: tuple[int, ...]
    team: int
    team_was: int


@dataclass(frozen=True)
class KeyDraft(Draft):
    """A key that was drawn, and works once it is confirmed. `digest`: hexadecimal; `expires_at`: RFC 3339."""

    agent: str
    prefix: str
    digest: str
    scopes: tuple[str, ...]
    expires_at: str | None = None


@dataclass(frozen=True)
class WebhookDraft(Draft):
    """Where an agent is to be told, and was; empty: nowhere. `drawn` (UUID text) is kept with what neither may show."""

    agent: str
    drawn: str
    url: str
    url_was: str
    new_secret: bool


@dataclass(frozen=True)
class ResetDraft(Draft):
    """A link that was drawn, by which a person sets a new password once it is confirmed. `digest`: hexadecimal."""

    person: int
    digest: str
