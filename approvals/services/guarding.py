"""People, groups, agents, keys, webhooks and reset links: what guards high risk among it is a proposal.

The rest is done at once.

Names are what people type; whoever is named and does not exist is said at the field.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import Group, User

from approvals import canonical
from approvals.errors import PolicyInvalid
from approvals.models import ChangeKind, RuleChange
from approvals.policies.guarded import AgentDraft, GroupDraft, KeyDraft, MembershipDraft, ResetDraft, WebhookDraft
from approvals.services.changes import PROPOSE, check_administers, propose
from checkpoints.errors import Unreadable
from runs.clock import database_now
from runs.models import Agent, AgentKey, Membership, Role, Team, Webhook
from runs.services.agents import UnknownScope, check_scopes, draw_key, revoke_key
from runs.services.passwords import draw_link
from runs.services.webhooks import WebhookRefused, draw_webhook, remove_webhook, verify_webhook


@dataclass(frozen=True)
class Drawn:
    """A proposal with a text that works once it is confirmed. The text is shown this once, and kept nowhere; but a
    webhook's secret, which is to sign, is kept sealed."""

    change: RuleChange
    text: str


def propose_roles(*, team: Team, by: User, person: str, roles: Sequence[str]) -> RuleChange:
    """Propose that a person has exactly these roles in the team; none: that they leave it.

    Raises `ChangeRefused`, `PolicyInvalid`.
    """
    check_administers(by=by, team=team.pk, attempt=PROPOSE, kind=ChangeKind.MEMBERSHIP)
    user = _people("person", [person])[0]
    if unknown := sorted(set(roles) - set(Role.values)):
        raise PolicyInvalid([("roles", f"do not exist: {', '.join(unknown)}")])
    was = Membership.objects.filter(user=user, team=team).values_list("roles", flat=True).first() or []
    if set(was) == set(roles):
        raise PolicyInvalid([("roles", "are what they have already")])
    draft = MembershipDraft(person=user.pk, roles=_ordered(roles), was=_ordered(was))
    return propose(team=team, by=by, kind=ChangeKind.MEMBERSHIP, body=draft.to_text())


def propose_members(
    *, team: Team, by: User, group: str, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> RuleChange:
    """Propose who joins and who leaves a group, which is made if it does not exist.

    Raises `ChangeRefused`, `PolicyInvalid`.
    """
    check_administers(by=by, team=team.pk, attempt=PROPOSE, kind=ChangeKind.GROUP)
    if not 1 <= len(group) <= 80 or canonical.wrong_text(group):
        raise PolicyInvalid([("group", "must have 1 to 80 characters")])
    joining, leaving = _people("add", add), _people("remove", remove)
    members = set(User.objects.filter(groups__name=group).values_list("pk", flat=True))
    if inside := [user.get_username() for user in joining if user.pk in members]:
        raise PolicyInvalid([("add", f"are in it already: {', '.join(inside)}")])
    if outside := [user.get_username() for user in leaving if user.pk not in members]:
        raise PolicyInvalid([("remove", f"are not in it: {', '.join(outside)}")])
    if not joining and not leaving and Group.objects.filter(name=group).exists():
        raise PolicyInvalid([("add", "or the next must name somebody")])
    draft = GroupDraft(group=group, add=_ids(joining), remove=_ids(leaving))
    return propose(team=team, by=by, kind=ChangeKind.GROUP, body=draft.to_text())


def propose_agent(*, agent: Agent, by: User, owners: Sequence[str], team: str) -> RuleChange:
    """Propose whose an agent is to be: its owners, and its team. Raises `ChangeRefused`, `PolicyInvalid`."""
    check_administers(by=by, team=agent.team_id, attempt=PROPOSE, kind=ChangeKind.AGENT)
    target = Team.objects.filter(name=team).first()
    if target is None:
        raise PolicyInvalid([("team", "does not exist")])
    draft = AgentDraft(
        agent=str(agent.pk),
        owners=_ids(_people("owners", owners)),
        owners_were=tuple(sorted(agent.owners.values_list("pk", flat=True))),
        team=target.pk,
        team_was=agent.team_id,
    )
    if (draft.owners, draft.team) == (draft.owners_were, draft.team_was):
        raise PolicyInvalid([("owners", "and team are what they were")])
    if target != agent.team and target.agents.filter(name=agent.name).exists():
        raise PolicyInvalid([("team", "has an agent of that name already")])
    return propose(team=agent.team, by=by, kind=ChangeKind.AGENT, body=draft.to_text())


def propose_key(*, agent: Agent, by: User, scopes: Sequence[str], expires_at: datetime | None = None) -> Drawn:
    """Propose a key of an agent, which its proposer has from now on. Raises `ChangeRefused`, `PolicyInvalid`."""
    check_administers(by=by, team=agent.team_id, attempt=PROPOSE, kind=ChangeKind.AGENT_KEY)
    try:
        check_scopes(scopes)
    except UnknownScope as error:
        raise PolicyInvalid([("scopes", f"do not exist: {error.scope}")]) from error
    if not scopes:
        raise PolicyInvalid([("scopes", "must be at least one")])
    if expires_at is not None and expires_at <= database_now():
        raise PolicyInvalid([("expires_at", "must be later than now")])
    key = draw_key()
    draft = KeyDraft(
        agent=str(agent.pk),
        prefix=key.prefix,
        digest=key.digest.hex(),
        scopes=tuple(scopes),
        expires_at=expires_at.isoformat() if expires_at else None,
    )
    return Drawn(propose(team=agent.team, by=by, kind=ChangeKind.AGENT_KEY, body=draft.to_text()), key.text)


def stop_key(*, key: AgentKey, by: User) -> None:
    """At once, without a second person: it only takes something away. Raises `ChangeRefused`."""
    check_administers(by=by, team=key.agent.team_id, attempt="revoke a key")
    revoke_key(key=key, by=by)


def propose_webhook(*, agent: Agent, by: User, url: str, new_secret: bool = False) -> RuleChange | Drawn:
    """Propose where an agent is told. A first address comes with a secret; another one keeps it, unless a `new_secret`
    is wanted.

    Raises `ChangeRefused`, `PolicyInvalid`.
    """
    check_administers(by=by, team=agent.team_id, attempt=PROPOSE, kind=ChangeKind.WEBHOOK)
    webhook = Webhook.objects.filter(agent=agent).first()
    if webhook is not None and webhook.url == url and not new_secret:
        raise PolicyInvalid([("url", "is what it is already")])
    try:
        drawn, secret = draw_webhook(agent=agent, url=url, new_secret_wanted=new_secret or webhook is None)
    except WebhookRefused as error:
        raise PolicyInvalid([("url", f"cannot be used: {error}")]) from error
    draft = WebhookDraft(
        agent=str(agent.pk),
        drawn=str(drawn.pk),
        url=drawn.shown_url,
        url_was=webhook.shown_url if webhook else "",
        new_secret=secret is not None,
    )
    change = propose(team=agent.team, by=by, kind=ChangeKind.WEBHOOK, body=draft.to_text(), keep=drawn.save)
    return change if secret is None else Drawn(change, secret)


def challenge(*, agent: Agent, by: User) -> None:
    """Let the agent's webhook be used once its receiver answers a challenge now. No transaction may be open.

    Raises `ChangeRefused`, `WebhookRefused`.
    """
    check_administers(by=by, team=agent.team_id, attempt="verify a webhook")
    try:
        verify_webhook(agent=agent, by=by)
    except Unreadable as error:
        raise WebhookRefused(str(error)) from error


def stop_webhook(*, agent: Agent, by: User) -> None:
    """At once, without a second person: it only takes something away. Raises `ChangeRefused`, `WebhookRefused`."""
    check_administers(by=by, team=agent.team_id, attempt="remove a webhook")
    remove_webhook(agent=agent, by=by)


def propose_reset(*, team: Team, by: User, person: User) -> Drawn:
    """Propose a link by which a member of the team sets a new password. Raises `ChangeRefused`, `PolicyInvalid`."""
    check_administers(by=by, team=team.pk, attempt=PROPOSE, kind=ChangeKind.RESET_LINK)
    if not person.is_active or not Membership.objects.filter(user=person, team=team).exists():
        raise PolicyInvalid([("person", "is not an active member of the team")])
    link = draw_link()
    draft = ResetDraft(person=person.pk, digest=link.digest.hex())
    return Drawn(propose(team=team, by=by, kind=ChangeKind.RESET_LINK, body=draft.to_text()), link.text)


def _people(field: str, names: Sequence[str]) -> list[User]:
    """The active people of these names. Raises `PolicyInvalid`, naming those that there are not."""
    found = {user.get_username(): user for user in User.objects.filter(username__in=names, is_active=True)}
    if missing := [name for name in names if name not in found]:
        raise PolicyInvalid([(field, f"names nobody who has an active account: {', '.join(missing)}")])
    return list(found.values())


def _ids(people: Sequence[User]) -> tuple[int, ...]:
    return tuple(sorted(user.pk for user in people))


def _ordered(roles: Sequence[str]) -> tuple[str, ...]:
    return tuple(role.value for role in Role if role in roles)
