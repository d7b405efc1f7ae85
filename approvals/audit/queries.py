"""Reading the trail: who may see which events, filters, and pages of them."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from approvals import queries as approvals
from approvals.models import Approval, AuditEvent
from runs import queries as runs
from runs.models import Role, Run
from runs.principals import Person, Principal

PAGE = 50


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


@dataclass(frozen=True)
class Page:
    """Newest first. `after` is the mark of the last event if there are more."""

    events: list[AuditEvent]
    after: tuple[datetime, int] | None


def visible_to(principal: Principal) -> QuerySet[AuditEvent]:
    """The events that `principal` may read.

    An agent: those of its runs. A person: all of the teams whose auditor they are, the configuration of the teams whose
    admin they are, the site's own if they are a superuser, and those of every run that they may read and every approval that they see.
    """
    seen = Q(subject__in=approvals.visible_to(principal).order_by().values("pk"))
    seen |= Q(subject__in=runs.readable_by(principal).order_by().values("pk"))
    if isinstance(principal, Person):
        seen |= Q(team__in=teams_of(principal, Role.AUDITOR))
        seen |= Q(chain__in=[f"team:{team}" for team in teams_of(principal, Role.ADMIN)])
        if principal.user.is_superuser:
            seen |= Q(chain="site")
    return AuditEvent.objects.filter(seen)


def exportable_by(person: Person) -> QuerySet[AuditEvent]:
    """What a person may take away: the events of the teams whose auditor they are."""
    return AuditEvent.objects.filter(team__in=teams_of(person, Role.AUDITOR))


def teams_of(person: Person, role: Role) -> list[int]:
    """The teams in which `person` has `role`."""
    held = person.user.memberships.filter(roles__contains=[role])
    return list(held.values_list("team", flat=True))


def narrowed(events: QuerySet[AuditEvent], filters: Filters) -> QuerySet[AuditEvent]:
    """`events` that pass every filter."""
    conditions = {"team": filters.team, "type": filters.type, "at__gte": filters.since, "at__lt": filters.until}
    events = events.filter(**{name: value for name, value in conditions.items() if value})
    if filters.person:
        events = events.filter(Q(actor=f"person:{filters.person}") | Q(content__person=filters.person))
    if filters.agent:
        of_agent = _about(Approval.objects.filter(agent=filters.agent), Run.objects.filter(agent=filters.agent))
        events = events.filter(Q(actor=f"agent:{filters.agent}") | of_agent)
    if filters.tool:
        events = events.filter(_about(Approval.objects.filter(tool__iexact=filters.tool)))
    if filters.approval:
        events = events.filter(chain=f"approval:{filters.approval}")
    if filters.run:
        events = events.filter(_about(Approval.objects.filter(run=filters.run), Run.objects.filter(pk=filters.run)))
    if filters.text:
        # Bodies are ASCII with escapes; so is what to look for.
        events = events.filter(content__body__icontains=json.dumps(filters.text)[1:-1])
    return events


def page(events: QuerySet[AuditEvent], *, after: tuple[datetime, int] | None = None, size: int = PAGE) -> Page:
    """The next `size` events, newest first, with their bodies and seals' numbers."""
    rows = events.select_related("content", "leaf", "team").order_by("-at", "-id")
    if after:
        at, key = after
        rows = rows.filter(at__lte=at).filter(Q(at__lt=at) | Q(pk__lt=key))
    found = list(rows[: size + 1])
    more = len(found) > size
    found = found[:size]
    return Page(found, (found[-1].at, found[-1].pk) if more else None)


def _about(*subjects: QuerySet[Any]) -> Q:
    condition = Q()
    for subject in subjects:
        condition |= Q(subject__in=subject.order_by().values("pk"))
    return condition
