"""Events as the audit page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from approvals.audit.records import exact
from approvals.models import AuditEvent
from runs.models import Agent
from runs.presentation.values import Row, rows

JSON_TEXT = ("args", "args_before")


@dataclass(frozen=True)
class Line:
    """One event. `actor` is a name; `facts` is None when the body was erased; `leaf` when it is not sealed yet."""

    event: AuditEvent
    actor: str
    facts: list[Row] | None
    leaf: int | None


def lines(events: Sequence[AuditEvent]) -> list[Line]:
    """One line for each of `events`, which were fetched with their bodies and leaves."""
    names = _names({event.actor for event in events})
    return [Line(event, names.get(event.actor, event.actor), _facts(event), _leaf(event)) for event in events]


def _leaf(event: AuditEvent) -> int | None:
    return event.leaf.no if hasattr(event, "leaf") else None


def _facts(event: AuditEvent) -> list[Row] | None:
    if not hasattr(event, "content"):
        return None
    body: dict[str, Any] = exact(event.content.body)
    return rows({name: _opened(name, value) for name, value in body.items()})


def _opened(name: str, value: Any) -> Any:
    """Arguments stand in the body as canonical text; here they are read, not quoted."""
    if name in JSON_TEXT and isinstance(value, str) and value:
        return exact(value)
    return value


def _names(actors: set[str]) -> dict[str, str]:
    keys: dict[str, list[str]] = {"person": [], "agent": []}
    for kind, _, key in (actor.partition(":") for actor in actors):
        keys.get(kind, []).append(key)
    people = User.objects.filter(pk__in=keys["person"])
    agents = Agent.objects.filter(pk__in=keys["agent"])
    return {
        **{f"person:{person.pk}": person.get_full_name() or person.username for person in people},
        **{f"agent:{agent.pk}": agent.name for agent in agents},
    }
