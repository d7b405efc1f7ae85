"""Policies: which apply, what they ask together, and who may vote."""

from approvals.policies.eligibility import Electorate, Tally, describe, electorate, people_of, tally
from approvals.policies.matching import Asked, Rule, denied_by, required, rules_of, second_approver
from approvals.policies.requirements import Requirements, Seat, Stage

__all__ = [
    "Asked",
    "Electorate",
    "Requirements",
    "Rule",
    "Seat",
    "Stage",
    "Tally",
    "denied_by",
    "describe",
    "electorate",
    "people_of",
    "required",
    "rules_of",
    "second_approver",
    "tally",
]
