"""What guards high risk: whose decisions a group, a person or an agent has a part in.

Every policy in force can apply to high risk: a policy says from which risk on it applies, never up to which.
"""

from django.contrib.auth.models import Group, User
from django.db.models import OuterRef, Q, Subquery

from approvals import canonical
from approvals.models import Approval, Delegation, PolicyVersion
from approvals.policies.requirements import group_pool
from approvals.states import OPEN
from runs.clock import DatabaseNow
from runs.models import Membership, Role
from runs.principals import Person
from runs.queries import teams_of

DECIDING = frozenset({Role.REVIEWER, Role.ADMIN})  # a vote, and the second signature


def teams_deciding_by(group: str) -> frozenset[int]:
    """The teams in which the group decides: a policy in force names it, or an approval that is open waits for it."""
    text = f'"group":{canonical.dumps(group)}'
    newest = PolicyVersion.objects.filter(policy=OuterRef("policy")).order_by("-number").values("number")[:1]
    named = PolicyVersion.objects.filter(
        Q(quorum__contains=text) | Q(escalation__contains=text), policy__is_active=True, number=Subquery(newest)
    )
    waiting = Approval.objects.filter(status__in=sorted(OPEN), pools__contains=[group_pool(group)])
    return frozenset(
        team for (team,) in named.order_by().values_list("policy__team").union(waiting.order_by().values_list("team"))
    )


def teams_relying_on(person: User) -> frozenset[int]:
    """The teams whose high risk the person has a part in: as a reviewer or administrator, by a group, by standing in
    for somebody who has; and, of a superuser, every team of theirs."""
    now = DatabaseNow()
    given = Delegation.objects.filter(
        taker=person, confirmed_by__isnull=False, revoked_at__isnull=True, starts_at__lte=now, ends_at__gt=now
    )
    people = [person.pk, *given.values_list("giver_id", flat=True)]
    memberships = Membership.objects.filter(user__in=people, roles__overlap=list(DECIDING))
    teams = set(memberships.values_list("team_id", flat=True))
    for group in Group.objects.filter(user__in=people).distinct().values_list("name", flat=True):
        teams |= teams_deciding_by(group)
    if person.is_superuser:
        teams |= set(Membership.objects.filter(user=person).values_list("team_id", flat=True))
    return frozenset(teams)


def teams_lent_by(giver: User) -> frozenset[int]:
    """The teams that a delegation of the person touches: those whose high risk they have a part in, or else theirs."""
    return teams_relying_on(giver) or frozenset(teams_of(Person(giver)))
