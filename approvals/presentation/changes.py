"""Proposals in words: all that they change, and who may do what about them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse

from approvals.models import AutomaticRule, ChangeKind, Policy, PolicyVersion, RuleChange
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.policies.guarded import AgentDraft, GroupDraft, KeyDraft, MembershipDraft, ResetDraft, WebhookDraft
from approvals.presentation.facts import Fact, caps_of, compared, draft_facts, version_facts
from approvals.presentation.policy import name_of, span
from approvals.queries.confirmers import concerned, confirmers
from approvals.queries.rules import ALONE_SHOWN_FOR, alone_lately
from approvals.services.matters import matter_of
from runs.models import Agent, DrawnWebhook, Membership, Role, Team
from runs.services.passwords import LINK_LIFE

KINDS = {
    ChangeKind.POLICY: "Policy",
    ChangeKind.AUTOMATIC_RULE: "Automatic rule",
    ChangeKind.LIFT_STOP: "Let the automatic rules go on",
    ChangeKind.GROUP: "Members of the group",
    ChangeKind.MEMBERSHIP: "Roles",
    ChangeKind.AGENT: "Agent",
    ChangeKind.AGENT_KEY: "New key for the agent",
    ChangeKind.WEBHOOK: "Webhook of the agent",
    ChangeKind.RESET_LINK: "Reset link",
}
ALONE_SHOWN = 3
GONE = [Fact("Becomes", "no longer in force")]
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """`may_confirm`: as the second administrator. `may_alone`: as the only one there is, with a reason.

    `waits_for` says to who takes part and may do neither who can, or from when. `event` is the address of what became
    of it in the audit trail, for who may read it there.
    """

    change: RuleChange
    kind: str
    name: str
    facts: tuple[Fact, ...]
    by: str
    may_confirm: bool
    may_alone: bool
    may_withdraw: bool
    waits_for: str
    decided_by: str
    event: str


@dataclass(frozen=True, slots=True)
class AloneLine:
    """What somebody put in force alone. `until`: so long it is shown on every page; `event` as in `ChangeLine`."""

    who: str
    what: str
    at: datetime
    reason: str
    until: datetime
    event: str


def alone_lines(viewer: User) -> list[AloneLine]:
    """For the head of every page: the newest few."""
    return [
        AloneLine(
            who=name_of(change.decided_by or change.proposed_by),
            what=": ".join(part for part in (KINDS[ChangeKind(change.kind)], described(change)[0]) if part),
            at=change.decided_at,
            reason=change.reason,
            until=change.decided_at + ALONE_SHOWN_FOR,
            event=event_address(change, viewer),
        )
        for change in alone_lately(viewer)[:ALONE_SHOWN]
        if change.decided_at is not None
    ]


def change_lines(changes: Iterable[RuleChange], viewer: User) -> list[ChangeLine]:
    """Undecided proposals, as `viewer` may decide them."""
    return [change_line(change, viewer) for change in changes]


def change_line(change: RuleChange, viewer: User) -> ChangeLine:
    matter, teams = matter_of(change), concerned(change)
    people = confirmers(
        proposer=change.proposed_by_id, teams=teams, subjects=matter.subjects(), of_site=matter.of_site()
    )
    takes_part, is_alone = people.takes_part(viewer.pk), people.is_alone(viewer.pk)
    why_not = people.why_not_alone(viewer.pk) if is_alone else people.why_not(viewer.pk)
    name, facts = described(change)
    if takes_part and change.kind == ChangeKind.WEBHOOK:
        facts = [*facts, *_query(change)]
    return ChangeLine(
        change=change,
        kind=KINDS[ChangeKind(change.kind)],
        name=name,
        facts=tuple(facts),
        by=name_of(change.proposed_by),
        may_confirm=not why_not and not is_alone,
        may_alone=not why_not and is_alone,
        may_withdraw=takes_part,
        waits_for=why_not if takes_part else "",
        decided_by=name_of(change.decided_by) if change.decided_by else "",
        event=event_address(change, viewer),
    )


def event_address(change: RuleChange, viewer: User) -> str:
    """Where the audit page shows how the change was decided; empty for who may not read it, and while it is not."""
    readers = Membership.objects.filter(team=change.team_id, user=viewer, roles__overlap=[Role.ADMIN, Role.AUDITOR])
    if change.decided_at is None or not readers.exists():
        return ""
    until = change.decided_at + timedelta(seconds=30)
    moments = {"since": f"{change.decided_at:%Y-%m-%d %H:%M:%S.%f}", "until": f"{until:%Y-%m-%d %H:%M:%S.%f}"}
    return f"{reverse('audit')}?{urlencode({'team': change.team_id, **moments})}"


def described(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    """What it is about, by name, and all that it changes."""
    return WORDS[ChangeKind(change.kind)](change)


def _policy(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    policy = PolicyDraft.from_text(change.body)
    newest = PolicyVersion.objects.filter(policy__team=change.team_id, policy__name=policy.name).first()
    before = version_facts(newest) if newest else []
    facts = compared(before, draft_facts(policy)) if policy.is_active else GONE
    was_off = Policy.objects.filter(team=change.team_id, name=policy.name, is_active=False).exists()
    if policy.is_active:
        facts = [*facts, *_pools(policy)]
    return policy.name, [Fact("Becomes", "in force again"), *facts] if policy.is_active and was_off else facts


def _pools(policy: PolicyDraft) -> list[Fact]:
    """Who is in the groups that it names: until it does, they were nobody's concern."""
    named = dict.fromkeys(part["group"] for part in (*policy.quorum, *policy.escalation) if part["group"])
    return [Fact(f"In {group} now", _people(_members(group))) for group in named]


def _automatic_rule(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    rule = RuleDraft.from_text(change.body)
    current = AutomaticRule.objects.filter(team=change.team_id, name=rule.name, is_active=True).first()
    before = caps_of(current) if current else []
    return rule.name, compared(before, caps_of(rule)) if rule.is_active else GONE


def _lifting(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    return "", []


def _group(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    draft = GroupDraft.from_text(change.body)
    facts = [("Joins", _people(draft.add)), ("Leaves", _people(draft.remove))]
    facts.append(("In it now", _people(_members(draft.group))))
    facts.append(("Decides in", _teams(change.teams)))
    return draft.group, [Fact(name, text) for name, text in facts if text not in (NOBODY, "") or name == "In it now"]


def _membership(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    draft = MembershipDraft.from_text(change.body)
    roles, was = (", ".join(Role(role).label.lower() for role in each) or "none" for each in (draft.roles, draft.was))
    return _people([draft.person]), [Fact("Roles", roles, was), Fact("Team", _teams([change.team_id]))]


def _agent(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    draft = AgentDraft.from_text(change.body)
    owners, were = _people(draft.owners), _people(draft.owners_were)
    team, was = _teams([draft.team]), _teams([draft.team_was])
    facts = [Fact("Owners", owners, "" if owners == were else were), Fact("Team", team, "" if team == was else was)]
    return Agent.objects.get(pk=draft.agent).name, facts


def _key(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    draft = KeyDraft.from_text(change.body)
    ends = f"{draft.expires_at[:16].replace('T', ' ')} UTC" if draft.expires_at else "it is revoked"
    facts = [
        Fact("Key", f"fmt_{draft.prefix}_…, which {_people([change.proposed_by_id])} has"),
        Fact("May", ", ".join(draft.scopes)),
        Fact("Until", ends),
    ]
    return Agent.objects.get(pk=draft.agent).name, facts


def _webhook(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    draft = WebhookDraft.from_text(change.body)
    secret = f"a new secret, which {_people([change.proposed_by_id])} has"
    facts = [
        Fact("Told at", draft.url, "" if draft.url == draft.url_was else draft.url_was),
        Fact("Signed with", secret if draft.new_secret else "the secret that it has"),
        Fact("Used", "once it is verified"),
    ]
    return Agent.objects.get(pk=draft.agent).name, facts


def _query(change: RuleChange) -> list[Fact]:
    """What else the address has, which may be a secret: for those who confirm all of it."""
    drawn = DrawnWebhook.objects.filter(pk=WebhookDraft.from_text(change.body).drawn).first()
    query = drawn.url.partition("?")[2] if drawn else ""
    return [Fact("With the query", query)] if query else []


def _reset(change: RuleChange) -> tuple[str, Sequence[Fact]]:
    draft = ResetDraft.from_text(change.body)
    what = f"sets a new password, once, within {span(LINK_LIFE)} of the confirmation"
    facts = [Fact("Whoever has it", what), Fact("It is with", _people([change.proposed_by_id]))]
    return _people([draft.person]), [*facts, Fact("Decides in", _teams(change.teams))] if change.teams else facts


WORDS: dict[ChangeKind, Callable[[RuleChange], tuple[str, Sequence[Fact]]]] = {
    ChangeKind.POLICY: _policy,
    ChangeKind.AUTOMATIC_RULE: _automatic_rule,
    ChangeKind.LIFT_STOP: _lifting,
    ChangeKind.GROUP: _group,
    ChangeKind.MEMBERSHIP: _membership,
    ChangeKind.AGENT: _agent,
    ChangeKind.AGENT_KEY: _key,
    ChangeKind.WEBHOOK: _webhook,
    ChangeKind.RESET_LINK: _reset,
}


def called(user: User) -> str:
    """A person beyond doubt: the name that they sign in with stands beside the one that they go by."""
    name = user.get_full_name()
    return f"{name} ({user.get_username()})" if name else user.get_username()


def _members(group: str) -> list[int]:
    return list(User.objects.filter(groups__name=group).values_list("pk", flat=True))


def _people(people: Iterable[int]) -> str:
    return ", ".join(called(user) for user in User.objects.filter(pk__in=list(people)).order_by("username")) or NOBODY


def _teams(teams: Iterable[int]) -> str:
    return ", ".join(Team.objects.filter(pk__in=list(teams)).values_list("name", flat=True))
