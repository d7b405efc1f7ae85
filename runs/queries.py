"""Which runs a principal sees, reads and operates. `visible_to` is the only way in, for pages, API and events."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from runs.errors import RunNotFound
from runs.models import Role, Run
from runs.principals import AgentPrincipal, Person, Principal

CONTENT_ROLES = (Role.REVIEWER, Role.OPERATOR, Role.AUDITOR)


def visible_to(principal: Principal) -> QuerySet[Run]:
    """The runs that exist for this principal: an agent's own, a person's teams'. Being a superuser adds nothing."""
    return _of(principal, Role.values)


def listable_by(principal: Principal) -> list[QuerySet[Run]]:
    """The same in parts, each of which an index has in order."""
    if isinstance(principal, AgentPrincipal):
        return [visible_to(principal)]
    return [Run.objects.filter(team=team) for team in teams_of(principal)]


def readable_by(principal: Principal) -> QuerySet[Run]:
    """The runs whose input, snapshots and results it may read; an administrator of the team sees metadata only."""
    return _of(principal, CONTENT_ROLES)


def listed(runs: QuerySet[Run]) -> QuerySet[Run]:
    """The same for a list: with head and agent, and without what may be megabytes."""
    return runs.select_related("head", "agent").defer("input", "result", "traceback")


def get(runs: QuerySet[Run], run_id: UUID) -> Run:
    """One of `runs`, with its head and agent. Raises RunNotFound for unknown and not visible alike."""
    run = runs.select_related("head", "agent").filter(pk=run_id).first()
    if run is None:
        raise RunNotFound(run_id)
    return run


def may_operate(principal: Principal, run: Run) -> bool:
    """Whether it may cancel, retry and fork the run: its agent, and the operators of its team."""
    if isinstance(principal, AgentPrincipal):
        return run.agent_id == principal.agent.pk
    return can_operate(principal, run.team_id)


def can_operate(person: Person, team_id: int) -> bool:
    """Whether the person is an operator of the team."""
    return person.user.memberships.filter(team_id=team_id, roles__contains=[Role.OPERATOR]).exists()


def teams_of(person: Person, roles: Sequence[str] = tuple(Role.values)) -> list[int]:
    """The teams in which the person has one of the roles."""
    return list(person.user.memberships.filter(roles__overlap=list(roles)).values_list("team", flat=True))


def _of(principal: Principal, roles: Sequence[str]) -> QuerySet[Run]:
    match principal:
        case AgentPrincipal(agent=agent):
            return Run.objects.filter(agent=agent)
        case Person():
            # Read first, so that PostgreSQL sees which teams they are.
            return Run.objects.filter(team__in=teams_of(principal, roles))
