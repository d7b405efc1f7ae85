"""Rules in words: what a policy or an automatic rule matches and asks for, and what a proposal changes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from approvals import canonical
from approvals.models import AutomaticRule, PolicyVersion
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.presentation.policy import span
from approvals.states import Risk

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Fact:
    """`was`: what a proposal changes; empty where it changes nothing, or there is nothing yet."""

    name: str
    text: str
    was: str = ""


def version_facts(version: PolicyVersion) -> list[Fact]:
    """What a version matches, and what it asks for."""
    quorum = canonical.parse(version.quorum)
    stages = [(stage["group"], timedelta(seconds=stage["seconds"])) for stage in canonical.parse(version.escalation)]
    spans = (version.deadline, version.minimum_deadline, version.grant_life)
    return _policy_facts(version, quorum=quorum, stages=stages, spans=spans)


def draft_facts(policy: PolicyDraft) -> list[Fact]:
    """The same of a version that is only proposed."""
    stages = [(stage["group"], timedelta(seconds=int(stage["seconds"]))) for stage in policy.escalation]
    spans = tuple(map(_span, (policy.deadline, policy.minimum_deadline, policy.grant_life)))
    return _policy_facts(policy, quorum=policy.quorum, stages=stages, spans=spans)


def compared(before: Sequence[Fact], after: Sequence[Fact]) -> list[Fact]:
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


def caps_of(rule: AutomaticRule | RuleDraft) -> list[Fact]:
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
