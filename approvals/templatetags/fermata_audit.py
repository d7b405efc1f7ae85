"""Whether to show the way to the audit trail."""

from django import template
from django.contrib.auth.models import AnonymousUser, User

from approvals.audit import queries
from runs.principals import Person

register = template.Library()


@register.filter
def oversees(user: User | AnonymousUser) -> bool:
    """Whether the audit page is for this person."""
    return isinstance(user, User) and queries.oversees(Person(user))
