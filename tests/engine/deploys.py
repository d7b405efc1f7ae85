"""Standing in for deploys: one workflow, registered anew as each version of the code has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runs.authoring import RunContext, workflow
from runs.engine import tools, workflows
from runs.engine.build import build

Upcaster = Callable[[dict[str, Any]], Any]


class Deployment:
    """What this process has registered, as builds that follow each other."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings

    def build(self, name: str) -> None:
        """From here on this process is another build of the code."""
        self._settings.FERMATA_BUILD = name
        build.cache_clear()

    def workflow(
        self, *, schema: int = 1, upcasters: dict[int, Upcaster] | None = None, **phases: Callable[..., object]
    ) -> str:
        """Deploy `test/deployed`, which begins at `start` and waits in `finish` for the event `go`; its name.

        `phases` replace these two, or come besides them.
        """
        members: dict[str, Any] = {"__qualname__": "Deployed", "start": start, "finish": finish, **phases}
        for name, phase in phases.items():
            phase.__name__ = name
        for number, function in (upcasters or {}).items():
            members[f"from_{number}"] = workflows.upcast(from_schema=number)(function)
        workflow("test/deployed", schema=schema)(type("Deployed", (), members))
        return "test/deployed"

    def remove_workflow(self, name: str) -> None:
        del workflows._workflows[name]

    def remove_tool(self, name: str) -> None:
        del tools._tools[name]


def start(self: Any, run: RunContext) -> object:
    run.state["greeting"] = "hello"
    return self.finish


def finish(self: Any, run: RunContext) -> object:
    run.wait_for_event("go")
    return run.complete(run.state)


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Deployment]:
    """Registers and removes as it likes; all of it is undone after the test."""
    monkeypatch.setattr(workflows, "_workflows", dict(workflows._workflows))
    monkeypatch.setattr(tools, "_tools", dict(tools._tools))
    yield Deployment(settings)
    build.cache_clear()
