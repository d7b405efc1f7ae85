"""Workflows: registered classes made of phases."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
_ENTRY = "_fermata_external_entry"
_UPCASTS = "_fermata_upcasts_from"


@dataclass(frozen=True)
class Every:
    """When the boundary between two phases is saved. It always is before anything is recorded, and at a gate, and at
    the end: this spares boundaries of phases that only read and compute."""

    phases: int | None
    seconds: float | None

    def is_due(self, *, phases: int, seconds: float) -> bool:
        """Whether to save now: so many phases and seconds after the last time."""
        enough = self.phases is not None and phases >= self.phases
        return enough or (self.seconds is not None and seconds >= self.seconds)


def every(*, phases: int | None = None, seconds: float | None = None) -> Every:
    """Save after so many phases or so many seconds, whichever comes first. Raises ValueError."""
    if (phases is None and seconds is None) or (phases is not None and phases < 1):
        raise ValueError("every: give phases=, at least 1, or seconds=, or both")
    return Every(phases, seconds)


EVERY_PHASE = every(phases=1)


@dataclass(frozen=True)
class Workflow:
    """A registered class. `phases` by name; `upcasters[n]` takes a state of schema n to n + 1."""

    name: str
    schema: int
    cls: type
    phases: Mapping[str, Callable[..., Any]]
    entries: frozenset[str]
    checkpoint: Every = EVERY_PHASE
    upcasters: Mapping[int, Upcaster] = field(default_factory=dict)

    @property
    def oldest(self) -> int:
        """The oldest schema whose snapshots this code can take."""
        schema = self.schema
        while schema - 1 in self.upcasters:
            schema -= 1
        return schema

    def supports(self, schema: int) -> bool:
        return self.oldest <= schema <= self.schema


_workflows: dict[str, Workflow] = {}


def entry(*, external: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a phase that an external agent may enter with a snapshot of its own."""

    def mark(phase: Callable[..., Any]) -> Callable[..., Any]:
        setattr(phase, _ENTRY, external)
        return phase

    return mark


def upcast(*, from_schema: int) -> Callable[[Upcaster], staticmethod]:  # type: ignore[type-arg]
    """Mark a pure function of the state, inside the workflow's class: it takes `from_schema` to the next one."""

    def mark(function: Upcaster) -> staticmethod:  # type: ignore[type-arg]
        setattr(function, _UPCASTS, from_schema)
        return staticmethod(function)

    return mark


def _refuse_setattr(self: object, name: str, value: object) -> None:
    raise AttributeError(
        f"{type(self).__name__}.{name}: a workflow object keeps nothing between phases; put it into run.state[{name!r}]"
    )


def _check_phase(name: str, label: str, member: Callable[..., Any]) -> None:
    """Raises TypeError, naming what to change."""
    if inspect.iscoroutinefunction(member) or inspect.isgeneratorfunction(member):
        raise TypeError(f"workflow {name}: phase {label} must be a plain method, not async or a generator")
    if list(inspect.signature(member).parameters) != ["self", "run"]:
        raise TypeError(
            f"workflow {name}: phase {label} must take exactly (self, run); "
            "name helper methods with a leading underscore"
        )


def workflow(name: str, *, schema: int = 1, checkpoint: Every = EVERY_PHASE) -> Callable[[type], type]:
    """Register a class as the workflow `name`, whose snapshots have this `schema` number and are taken at `checkpoint`.

    Its public methods, `(self, run)`, are its phases; a hosted run begins at `start`. Raises TypeError or ValueError,
    saying what to change.
    """

    def register(cls: type) -> type:
        phases: dict[str, Callable[..., Any]] = {}
        entries: set[str] = set()
        upcasters: dict[int, Upcaster] = {}
        if "__init__" in vars(cls):
            raise TypeError(f"workflow {name}: no __init__; a fresh object is made for every phase")
        for label, member in inspect.getmembers_static(cls):
            function = member.__func__ if isinstance(member, staticmethod) else member
            if hasattr(function, _UPCASTS):
                upcasters[getattr(function, _UPCASTS)] = function
                continue
            if label.startswith("_") or not inspect.isfunction(member):
                continue
            _check_phase(name, label, member)
            phases[label] = member
            if getattr(member, _ENTRY, False):
                entries.add(label)
        if "start" not in phases and not entries:
            raise TypeError(f"workflow {name}: needs a phase 'start', or one marked @entry(external=True)")
        known = _workflows.get(name)
        if known and (known.cls.__module__, known.cls.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"workflow {name}: already registered by {known.cls.__module__}.{known.cls.__qualname__}")
        cls.__setattr__ = _refuse_setattr  # type: ignore[assignment,method-assign]
        _workflows[name] = Workflow(name, schema, cls, phases, frozenset(entries), checkpoint, upcasters)
        return cls

    return register


def find_workflow(name: str) -> Workflow | None:
    return _workflows.get(name)


def known_workflows() -> tuple[str, ...]:
    return tuple(sorted(_workflows))


def all_workflows() -> tuple[Workflow, ...]:
    return tuple(_workflows.values())


def supported_columns() -> tuple[list[str], list[int]]:
    """`supported_pairs` as two columns of equal length, for `unnest`."""
    pairs = supported_pairs()
    return [name for name, _ in pairs], [schema for _, schema in pairs]


def supported_pairs() -> list[tuple[str, int]]:
    """Every (workflow, schema) whose snapshots this build can resume."""
    return [(flow.name, schema) for flow in _workflows.values() for schema in range(flow.oldest, flow.schema + 1)]
