"""Reading the trail: who may see which events, and filters."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals import queries as approvals
from approvals.models import Approval, AuditEvent
from runs import queries as runs
from runs.models import Role, Run
from runs.principals import Person, Principal


@dataclass(frozen=True)
class Filters:
    """What to show; every field that is set narrows it. Times are aware; `until` is excluded."""

    team: int | None = None
    person: int | None = None
    agent: UUID | None = None
    tool: str = ""
    type: str = ""
    since: datetime | None = None
    until: datetime | None = None
    approval: UUID | None = None
    run: UUID | None = None
    text: str = ""

    def described(self) -> dict[str, Any]:
        """Those that are set, as JSON values."""
        return {
            name: value.isoformat() if isinstance(value, datetime) else value if isinstance(value, int) else str(value)
            for name, value in asdict(self).items()
            if value not in (None, "")
        }


def visible_to(principal: Principal) -> QuerySet[AuditEvent]:
    """The events that `principal` may read.

    An agent: those of its runs. A person: what they oversee, and those of every run that they may read and every
    approval that they see.
    """
    # Correlated: one look-up for each event, where a list of all that they see could be millions long.
    seen = Q(Exists(approvals.visible_to(principal).order_by().filter(pk=OuterRef("subject"))))
    seen |= Q(Exists(runs.readable_by(principal).order_by().filter(pk=OuterRef("subject"))))
    overseen = _overseen(principal) if isinstance(principal, Person) else []
    return AuditEvent.objects.filter(reduce(or_, overseen, seen))


def overseen_by(person: Person) -> list[QuerySet[AuditEvent]]:
    """What a person oversees: as an auditor, everything of the team; as its administrator, the team's configuration;
    as a superuser, what belongs to no team. In parts, each of which an index has in order; an event may be in two."""
    return [AuditEvent.objects.filter(part) for part in _overseen(person)]


def oversees(person: Person) -> bool:
    """Whether there is anything that the person oversees."""
    roles = [Role.AUDITOR, Role.ADMIN]
    return person.user.is_superuser or person.user.memberships.filter(roles__overlap=roles).exists()


def placed(filters: Filters) -> Q:
    """Those of `filters` that say where in the trail an event stands."""
    conditions = {"team": filters.team, "at__gte": filters.since, "at__lt": filters.until}
    where = Q(**{name: value for name, value in conditions.items() if value})
    if filters.approval:
        where &= Q(chain=f"approval:{filters.approval}")
    if filters.run:
        keys = Approval.objects.filter(run=filters.run).order_by().values_list("pk", flat=True)
        where &= Q(chain__in=[f"run:{filters.run}", *(f"approval:{key}" for key in keys)])
    return where


def narrowed(events: QuerySet[AuditEvent], filters: Filters) -> QuerySet[AuditEvent]:
    """`events` that pass every filter: all of them are read for it."""
    events = events.filter(placed(filters))
    if filters.type:
        events = events.filter(type=filters.type)
    if filters.person:
        events = events.filter(Q(actor=f"person:{filters.person}") | Q(content__person=filters.person))
    if filters.agent:
        asked = Approval.objects.filter(agent=filters.agent).order_by().values("pk")
        ran = Run.objects.filter(agent=filters.agent).order_by().values("pk")
        events = events.filter(subject__in=asked.union(ran, all=True))
    if filters.tool:
        events = events.filter(subject__in=Approval.objects.filter(tool__iexact=filters.tool).order_by().values("pk"))
    if filters.text:
        events = events.filter(content__body__icontains=in_bodies(filters.text))
    return events


def in_bodies(text: str) -> str:
    """As it stands in bodies, which are ASCII with escapes."""
    return json.dumps(text)[1:-1]


def _overseen(person: Person) -> list[Q]:
    chains = [f"team:{team}" for team in runs.teams_of(person, [Role.ADMIN])]
    if person.user.is_superuser:
        chains.append("site")
    return [*(Q(team=team) for team in runs.teams_of(person, [Role.AUDITOR])), *(Q(chain=chain) for chain in chains)]
