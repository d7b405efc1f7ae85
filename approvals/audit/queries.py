"""Reading the trail: who may see which events, filters, and pages of them."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from approvals import queries as approvals
from approvals.models import Approval, AuditEvent
from runs import queries as runs
from runs.models import Role, Run
from runs.principals import Person, Principal

PAGE = 50
LARGEST_ID = 2**63 - 1


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
class Place:
    """Where a page ends: at this event."""

    at: datetime
    id: int

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """What `str` gave; None for anything else."""
        at, _, key = text.partition("_")
        try:
            place = cls(datetime.fromisoformat(at), int(key))
        except ValueError:
            return None
        return place if place.at.tzinfo and 0 < place.id <= LARGEST_ID else None


@dataclass(frozen=True)
class Page:
    """Newest first. `end` is where to go on, if there are more."""

    events: list[AuditEvent]
    end: Place | None


def visible_to(principal: Principal) -> QuerySet[AuditEvent]:
    """The events that `principal` may read.

    An agent: those of its runs. A person: what they oversee, and those of every run that they may read and every
    approval that they see.
    """
    # Correlated: one look-up for each event, where a list of all that they see could be millions long.
    seen = Q(Exists(approvals.visible_to(principal).order_by().filter(pk=OuterRef("subject"))))
    seen |= Q(Exists(runs.readable_by(principal).order_by().filter(pk=OuterRef("subject"))))
    return AuditEvent.objects.filter(_overseen(principal) | seen if isinstance(principal, Person) else seen)


def overseen_by(person: Person) -> QuerySet[AuditEvent]:
    """What a person oversees: as an auditor, everything of the team; as its administrator, the team's configuration;
    as a superuser, what belongs to no team."""
    return AuditEvent.objects.filter(_overseen(person))


def teams_of(person: Person, role: Role) -> list[int]:
    """The teams in which `person` has `role`."""
    return list(person.user.memberships.filter(roles__contains=[role]).values_list("team", flat=True))


def oversees(person: Person) -> bool:
    """Whether there is anything that the person oversees."""
    roles = [Role.AUDITOR, Role.ADMIN]
    return person.user.is_superuser or person.user.memberships.filter(roles__overlap=roles).exists()


def narrowed(events: QuerySet[AuditEvent], filters: Filters) -> QuerySet[AuditEvent]:
    """`events` that pass every filter."""
    conditions = {"team": filters.team, "type": filters.type, "at__gte": filters.since, "at__lt": filters.until}
    events = events.filter(**{name: value for name, value in conditions.items() if value})
    if filters.person:
        events = events.filter(Q(actor=f"person:{filters.person}") | Q(content__person=filters.person))
    if filters.agent:
        asked = Approval.objects.filter(agent=filters.agent).order_by().values("pk")
        ran = Run.objects.filter(agent=filters.agent).order_by().values("pk")
        events = events.filter(subject__in=asked.union(ran, all=True))
    if filters.tool:
        events = events.filter(subject__in=Approval.objects.filter(tool__iexact=filters.tool).order_by().values("pk"))
    if filters.approval:
        events = events.filter(chain=f"approval:{filters.approval}")
    if filters.run:
        keys = Approval.objects.filter(run=filters.run).order_by().values_list("pk", flat=True)
        events = events.filter(chain__in=[f"run:{filters.run}", *(f"approval:{key}" for key in keys)])
    if filters.text:
        # Bodies are ASCII with escapes; so is what to look for.
        events = events.filter(content__body__icontains=json.dumps(filters.text)[1:-1])
    return events


def page(events: QuerySet[AuditEvent], *, after: Place | None = None, size: int = PAGE) -> Page:
    """The next `size` events, newest first, with their bodies and seals' numbers."""
    rows = events.select_related("content", "leaf", "team").order_by("-at", "-id")
    if after:
        rows = rows.filter(at__lte=after.at).exclude(at=after.at, pk__gte=after.id)
    found = list(rows[: size + 1])
    shown = found[:size]
    return Page(shown, Place(shown[-1].at, shown[-1].pk) if len(found) > size else None)


def _overseen(person: Person) -> Q:
    chains = [f"team:{team}" for team in teams_of(person, Role.ADMIN)]
    if person.user.is_superuser:
        chains.append("site")
    return Q(team__in=teams_of(person, Role.AUDITOR)) | Q(chain__in=chains)
