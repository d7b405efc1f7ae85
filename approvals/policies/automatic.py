"""Which automatic rule may approve an action. Anything that cannot be told speaks against it."""

from collections.abc import Sequence
from decimal import Decimal

from django.db.models import QuerySet

from approvals import canonical, schemas
from approvals.models import AutomaticRule
from approvals.policies.matching import tool_matches
from approvals.policies.requirements import Requirements
from approvals.states import Risk
from runs.clock import DatabaseNow


def live_rules(team_id: int) -> QuerySet[AutomaticRule]:
    """The rules of a team that are in force now."""
    return AutomaticRule.objects.filter(team=team_id, is_active=True, ends_at__gt=DatabaseNow()).order_by("id")


def candidate(
    rules: Sequence[AutomaticRule], requirements: Requirements, *, agent: str, tool: str, args: str
) -> AutomaticRule | None:
    """The first rule that may approve this; its caps are looked at only when it does. `args`: canonical JSON text.

    Never for high risk, never against a policy, never where the agent itself asked for somebody.
    """
    if not requirements.automatic or requirements.risk == Risk.HIGH or requirements.wanted:
        return None
    return next((rule for rule in rules if _matches(rule, agent=agent, tool=tool, args=args)), None)


def summed(rule: AutomaticRule, args: str) -> Decimal | None:
    """What the action adds to the rule's sum: 0 where it sums nothing, None where the number is missing or negative."""
    if not rule.sum_of:
        return Decimal(0)
    value = canonical.at(canonical.parse(args), rule.sum_of)
    if not isinstance(value, int | Decimal) or isinstance(value, bool) or value < 0:
        return None
    return Decimal(value)


def _matches(rule: AutomaticRule, *, agent: str, tool: str, args: str) -> bool:
    if rule.agents and agent not in rule.agents:
        return False
    if not any(tool_matches(pattern, tool) for pattern in rule.tools):
        return False
    try:
        fits = schemas.fits(args, rule.condition)
    except schemas.TooMuchWork:
        return False
    return fits and summed(rule, args) is not None
