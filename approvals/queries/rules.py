"""Whose rules a person reads: those of the teams that they operate, audit or administer. Superusers, all proposals."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from approvals.models import Approval, Delegation, Policy, RuleChange
from approvals.queries.people import groups_deciding_in
from approvals.states import OPEN, ApprovalKind
from runs.clock import DatabaseNow
from runs.models import Membership, Role, Team
from runs.principals import Person

ALONE_SHOWN_FOR = timedelta(days=7)
READERS = (Role.OPERATOR, Role.AUDITOR, Role.ADMIN)


def teams_ruled_for(person: Person) -> QuerySet[Team]:
    """The teams whose policies, automatic rules and proposals the person reads."""
    return _teams(person, *READERS)


def teams_administered_by(person: Person) -> QuerySet[Team]:
    """The teams whose rules the person may propose to change."""
    return _teams(person, Role.ADMIN)


def reads_rules(person: Person) -> bool:
    """Whether there can be anything of it for the person: rules, or proposals to confirm."""
    return person.user.is_superuser or teams_ruled_for(person).exists()


def policies_for(person: Person) -> QuerySet[Policy]:
    return Policy.objects.filter(team__in=teams_ruled_for(person))


def open_under(policy: Policy) -> QuerySet[Approval]:
    """The actions that wait for a decision and were asked under some version of the policy."""
    named = f'{{"id":{policy.pk},"name":'  # as canonical JSON has it
    waiting = Approval.objects.filter(team=policy.team_id, kind=ApprovalKind.ACTION, status__in=sorted(OPEN))
    return waiting.filter(requirements__contains=named)


def changes_for(person: Person) -> QuerySet[RuleChange]:
    """The proposals, decided or not, of the person's teams and of others that touch them; all of them for a superuser,
    who may confirm them."""
    return (
        RuleChange.objects.all() if person.user.is_superuser else RuleChange.objects.filter(_touching_teams_of(person))
    )


def open_changes_of(team: Team) -> QuerySet[RuleChange]:
    """What is proposed and not decided, in the team or elsewhere, and touches it."""
    return RuleChange.objects.filter(Q(team=team) | Q(teams__contains=[team.pk]), outcome="").select_related(
        "proposed_by"
    )


def open_changes_elsewhere(person: Person) -> QuerySet[RuleChange]:
    """For a superuser: what is proposed and not decided in the teams whose rules they do not read, team by team."""
    if not person.user.is_superuser:
        return RuleChange.objects.none()
    elsewhere = RuleChange.objects.filter(~_touching_teams_of(person), outcome="")
    return elsewhere.select_related("team", "proposed_by").order_by("team__name", "-id")


def alone_lately(user: User) -> QuerySet[RuleChange]:
    """What only administrators put in force alone in the last `ALONE_SHOWN_FOR`, the newest first: for superusers, and
    for the administrators and reviewers of the teams that it touches."""
    changes = RuleChange.objects.filter(alone=True, decided_at__gt=DatabaseNow() - ALONE_SHOWN_FOR)
    if not user.is_superuser:
        memberships = Membership.objects.filter(user=user, roles__overlap=[Role.ADMIN, Role.REVIEWER])
        teams = list(memberships.values_list("team_id", flat=True))
        changes = changes.filter(Q(team__in=teams) | Q(teams__overlap=teams))
    return changes.select_related("decided_by", "proposed_by").order_by("-decided_at")


def delegations_for(person: Person) -> QuerySet[Delegation]:
    """The person's own, given and taken, and those of everybody who is in a team that they administer, or in a group
    that decides in one. For a superuser, all that nobody has confirmed."""
    administered = teams_administered_by(person)
    deciding = {name for team in administered for name in groups_deciding_in(team.pk)}
    theirs = User.objects.filter(
        Q(pk__in=Membership.objects.filter(team__in=administered).values("user"))
        | Q(pk__in=User.groups.through.objects.filter(group__name__in=deciding).values("user"))
    )
    seen = Q(giver=person.user) | Q(taker=person.user) | Q(giver__in=theirs)
    return Delegation.objects.filter(seen | Q(confirmed_by__isnull=True) if person.user.is_superuser else seen)


def givers_for(person: Person) -> QuerySet[User]:
    """The others for whom the person may arrange a stand-in: those of the teams that they administer."""
    members = Membership.objects.filter(team__in=teams_administered_by(person)).values("user")
    return User.objects.filter(pk__in=members).exclude(pk=person.user.pk).order_by("username")


def stand_ins_for(person: Person) -> QuerySet[User]:
    """The others in the person's teams."""
    teams = Membership.objects.filter(user=person.user).values("team")
    members = Membership.objects.filter(team__in=teams).values("user")
    return User.objects.filter(is_active=True, pk__in=members).exclude(pk=person.user.pk).order_by("username")


def _touching_teams_of(person: Person) -> Q:
    teams = list(teams_ruled_for(person).values_list("pk", flat=True))
    return Q(team__in=teams) | Q(teams__overlap=teams)


def _teams(person: Person, *roles: Role) -> QuerySet[Team]:
    # Correlated by key and not joined: a team is wanted once, however many roles lead to it.
    memberships = Membership.objects.filter(user=person.user, roles__overlap=list(roles))
    return Team.objects.filter(pk__in=memberships.values("team"))
