"""Policies, automatic rules and proposals in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from approvals import canonical
from approvals.models import AutomaticRule, AutomaticStop, ChangeKind, Policy, PolicyVersion, RuleChange
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.presentation.policy import name_of, span
from approvals.states import Risk
from runs.models import Membership, Role, Team

KINDS = {
    ChangeKind.POLICY: "Policy",
    ChangeKind.AUTOMATIC_RULE: "Automatic rule",
    ChangeKind.LIFT_STOP: "Let the automatic rules go on",
}


NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Fact:
    """`was`: what a proposal changes; empty where it changes nothing, or there is nothing yet."""

    name: str
    text: str
    was: str = ""


GONE = [Fact("Becomes", "no longer in force")]


@dataclass(frozen=True, slots=True)
class PolicyLine:
    policy: Policy
    version: PolicyVersion
    matches: str
    asks: str


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """`may_confirm`: as the second administrator. `may_alone`: as the only one there is, with a reason."""

    change: RuleChange
    kind: str
    name: str
    facts: tuple[Fact, ...]
    by: str
    may_confirm: bool
    may_alone: bool


@dataclass(frozen=True, slots=True)
class TeamRules:
    """All that is in force in one team, and what is proposed."""

    team: Team
    policies: list[PolicyLine]
    changes: list[ChangeLine]
    automatic: list[tuple[AutomaticRule, tuple[Fact, ...]]]
    stop: AutomaticStop | None
    may_change: bool
    may_stop: bool


def team_rules(team: Team, viewer: User) -> TeamRules:
    roles = set(Membership.objects.filter(team=team, user=viewer).values_list("roles", flat=True).first() or ())
    policies = Policy.objects.filter(team=team).order_by("-is_active", "name").prefetch_related("versions")
    changes = list(RuleChange.objects.filter(team=team, outcome="").select_related("proposed_by"))
    rules = AutomaticRule.objects.filter(team=team, is_active=True)
    return TeamRules(
        team=team,
        policies=[policy_line(policy) for policy in policies if policy.versions.all()],
        changes=change_lines(changes, viewer, may_change=Role.ADMIN in roles),
        automatic=[(rule, tuple(_caps(rule))) for rule in rules],
        stop=AutomaticStop.objects.filter(team=team, lifted_at__isnull=True).select_related("by").first(),
        may_change=Role.ADMIN in roles,
        may_stop=bool(roles & {Role.ADMIN, Role.OPERATOR}),
    )


def policy_line(policy: Policy) -> PolicyLine:
    version = policy.versions.all()[0]
    facts = {fact.name: fact.text for fact in version_facts(version)}
    return PolicyLine(policy, version, matches=facts["Matches"], asks=facts["Asks"])


def version_facts(version: PolicyVersion) -> list[Fact]:
    """What a version matches, and what it asks for."""
    quorum = canonical.parse(version.quorum)
    stages = [(stage["group"], timedelta(seconds=stage["seconds"])) for stage in canonical.parse(version.escalation)]
    spans = (version.deadline, version.minimum_deadline, version.grant_life)
    return _policy_facts(version, quorum=quorum, stages=stages, spans=spans)


def change_lines(changes: Sequence[RuleChange], viewer: User, *, may_change: bool) -> list[ChangeLine]:
    """Undecided proposals of one team, as `viewer` may decide them."""
    return [_change_line(change, viewer, may_change=may_change) for change in changes]


def _change_line(change: RuleChange, viewer: User, *, may_change: bool) -> ChangeLine:
    is_own = change.proposed_by_id == viewer.pk
    others = Membership.objects.filter(team=change.team_id, roles__contains=[Role.ADMIN], user__is_active=True)
    name, facts = _proposed(change)
    return ChangeLine(
        change=change,
        kind=KINDS[ChangeKind(change.kind)],
        name=name,
        facts=tuple(facts),
        by=name_of(change.proposed_by),
        may_confirm=may_change and not is_own,
        may_alone=may_change and is_own and not others.exclude(user=viewer).exists(),
    )


def _proposed(change: RuleChange) -> tuple[str, list[Fact]]:
    match ChangeKind(change.kind):
        case ChangeKind.POLICY:
            policy = PolicyDraft.from_text(change.body)
            stages = [(stage["group"], timedelta(seconds=int(stage["seconds"]))) for stage in policy.escalation]
            spans = tuple(map(_span, (policy.deadline, policy.minimum_deadline, policy.grant_life)))
            facts = _policy_facts(policy, quorum=policy.quorum, stages=stages, spans=spans)
            newest = PolicyVersion.objects.filter(policy__team=change.team_id, policy__name=policy.name).first()
            before = version_facts(newest) if newest else []
            return policy.name, _compared(before, facts) if policy.is_active else GONE
        case ChangeKind.AUTOMATIC_RULE:
            rule = RuleDraft.from_text(change.body)
            current = AutomaticRule.objects.filter(team=change.team_id, name=rule.name, is_active=True).first()
            before = _caps(current) if current else []
            return rule.name, _compared(before, _caps(rule)) if rule.is_active else GONE
        case ChangeKind.LIFT_STOP:
            return "", []


def _compared(before: Sequence[Fact], after: Sequence[Fact]) -> list[Fact]:
    """`after`, saying at each fact what it was before; what falls away stands at the end."""
    if not before:
        return [*after]
    was, now = ({fact.name: fact.text for fact in facts} for facts in (before, after))
    names = dict.fromkeys([*now, *was])
    pairs = [(name, now.get(name, NOTHING), was.get(name, NOTHING)) for name in names]
    return [Fact(name, text, "" if text == old else old) for name, text, old in pairs]


def _policy_facts(
    rule: PolicyVersion | PolicyDraft,
    *,
    quorum: Sequence[dict[str, Any]],
    stages: Sequence[tuple[str, timedelta]],
    spans: Sequence[timedelta | None],
) -> list[Fact]:
    seats = [f"{seat['count']} of {seat['group'] or 'the team'}" for seat in quorum]
    deadline, minimum, life = spans
    said: list[tuple[str, str | bool]] = [
        ("Matches", _matches(rule) + (f", risk {rule.risk_at_least} or more" if rule.risk_at_least else "")),
        ("Arguments", rule.condition),
        ("Asks", "nobody: it is rejected" if rule.deny else " and ".join(seats)),
        ("Risk", f"at least {Risk(rule.risk).label.lower()}" if rule.risk else ""),
        ("Deadline", span(deadline) if deadline else ""),
        ("An agent may ask for", f"{span(minimum)} or more" if minimum else ""),
        ("After the deadline", ", then ".join(f"{group} for {span(length)}" for group, length in stages)),
        ("Used within", span(life) if life else ""),
        ("To reject", f"{rule.rejections} people" if rule.rejections > 1 else ""),
        ("Edits", "" if rule.allow_edits else "not allowed"),
        ("Reason", "must be given" if rule.require_reason else ""),
        ("Password", "asked of whoever decides" if rule.require_reauthentication else ""),
        ("Automatic rules", "may approve" if rule.allow_automatic else ""),
    ]
    return [Fact(name, str(text)) for name, text in said if text]


def _caps(rule: AutomaticRule | RuleDraft) -> list[Fact]:
    length = rule.window if isinstance(rule.window, timedelta) else timedelta(seconds=rule.window)
    ends = rule.ends_at if isinstance(rule.ends_at, datetime) else datetime.fromisoformat(rule.ends_at)
    caps = f"{rule.max_count} for each agent in {span(length)}"
    if rule.max_sum is not None:
        caps += f", {rule.max_sum.normalize():f}" if not isinstance(rule.max_sum, str) else f", {rule.max_sum}"
        caps += f" in all of {rule.sum_of}"
    facts = [Fact("Matches", _matches(rule)), Fact("At most", caps), Fact("Until", f"{ends:%Y-%m-%d %H:%M} UTC")]
    return [*facts, Fact("Arguments", rule.condition)] if rule.condition not in ("", "{}") else facts


def _matches(rule: PolicyVersion | PolicyDraft | AutomaticRule | RuleDraft) -> str:
    tools = ", ".join(rule.tools) if rule.tools else "every tool"
    return tools + (f", by {', '.join(rule.agents)}" if rule.agents else ", by every agent")


def _span(seconds: int | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=int(seconds))
