"""What is in force in a team, and what is proposed, in words."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from approvals.models import AutomaticRule, AutomaticStop, Policy, PolicyVersion
from approvals.presentation.changes import ChangeLine, change_lines
from approvals.presentation.facts import Fact, caps_of, version_facts
from approvals.queries.rules import open_changes_of
from runs.models import Membership, Role, Team


@dataclass(frozen=True, slots=True)
class PolicyLine:
    policy: Policy
    version: PolicyVersion
    matches: str
    asks: str


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
    rules = AutomaticRule.objects.filter(team=team, is_active=True)
    return TeamRules(
        team=team,
        policies=[policy_line(policy) for policy in policies if policy.versions.all()],
        changes=change_lines(open_changes_of(team), viewer),
        automatic=[(rule, tuple(caps_of(rule))) for rule in rules],
        stop=AutomaticStop.objects.filter(team=team, lifted_at__isnull=True).select_related("by").first(),
        may_change=Role.ADMIN in roles,
        may_stop=bool(roles & {Role.ADMIN, Role.OPERATOR}),
    )


def policy_line(policy: Policy) -> PolicyLine:
    version = policy.versions.all()[0]
    facts = {fact.name: fact.text for fact in version_facts(version)}
    return PolicyLine(policy, version, matches=facts["Matches"], asks=facts["Asks"])
