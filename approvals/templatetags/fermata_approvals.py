"""Approvals on pages of the floor below."""

from typing import Any

from django import template
from django.contrib.auth.models import AnonymousUser, User
from django.template import RequestContext

from approvals.models import Approval
from approvals.policies.probation import length
from approvals.presentation.changes import alone_lines
from approvals.presentation.chips import Chip, chip_of
from approvals.presentation.policy import span
from approvals.queries import rules, visible_to
from runs.models import Run
from runs.principals import Person

register = template.Library()


@register.simple_tag
def state_chip(approval: Approval) -> Chip | None:
    """How a list names the approval's state; None while it is simply pending."""
    return chip_of(approval)


@register.simple_tag
def probation() -> str:
    """For how long a new password does not count for high risk, in words; empty where it counts at once."""
    return span(length()) if length() else ""


@register.filter
def reads_rules(user: User | AnonymousUser) -> bool:
    """Whether the page of the rules is for this person."""
    return isinstance(user, User) and rules.reads_rules(Person(user))


@register.filter
def reads_agents(user: User | AnonymousUser) -> bool:
    """Whether the page of people, groups and agents is for this person."""
    return isinstance(user, User) and rules.teams_ruled_for(Person(user)).exists()


@register.inclusion_tag("rules/_alone.html", takes_context=True)
def changed_alone(context: RequestContext) -> dict[str, Any]:
    """What was put in force without a second administrator, for those who should know."""
    viewer = context["request"].user
    return {"lines": alone_lines(viewer) if isinstance(viewer, User) else []}


@register.inclusion_tag("approvals/_of_run.html", takes_context=True)
def approvals_of_run(context: RequestContext, run: Run) -> dict[str, Any]:
    """The run's approvals, oldest first, as far as whoever asks may see them."""
    viewer = Person(context["request"].user)
    approvals = visible_to(viewer).filter(run=run).select_related("decision__decided_by")
    return {"approvals": approvals.order_by("created_at", "id")}
