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
    """One event. `actor` is a name; `facts` is None when the body was erased; `leaf` when it is not sealed yet.

    `about` is tool and outcome, where there are any; `kind` what the chain belongs to: approval, run, team or site.
    """

    event: AuditEvent
    kind: str
    actor: str
    about: str
    facts: list[Row] | None
    leaf: int | None


def lines(events: Sequence[AuditEvent]) -> list[Line]:
    """One line for each of `events`, which were fetched with their bodies and leaves."""
    names = _names({event.actor for event in events})
    return [_line(event, names.get(event.actor, event.actor)) for event in events]


def _line(event: AuditEvent, actor: str) -> Line:
    body: dict[str, Any] | None = exact(event.content.body) if hasattr(event, "content") else None
    said = [str(body[name]) for name in ("tool", "outcome") if body.get(name)] if body else []
    return Line(
        event=event,
        kind=event.chain.partition(":")[0],
        actor=actor,
        about=", ".join(said),
        facts=None if body is None else rows({name: _opened(name, value) for name, value in body.items()}),
        leaf=event.leaf.no if hasattr(event, "leaf") else None,
    )


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
