"""Workflows that work, until a worker dies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from runs.authoring import RunContext, tool, workflow


@tool(effect="keyed", name="certify/send", remembers=timedelta(hours=1))
def send(what: str, *, idempotency_key: str) -> str:
    raise AssertionError("certifying has no real effect")


@workflow("certify/unordered")
class Unordered:
    """The order of a set of texts is another in every process."""

    def start(self, run: RunContext) -> object:
        for name in {"ada", "bob", "cleo", "dora"}:
            run.step("send", send, name, each=name)
        return run.complete()


@workflow("certify/dated")
class Dated:
    """Tomorrow it is another call."""

    def start(self, run: RunContext) -> object:
        run.step("send", send, f"{run.input['prefix']} {datetime.now(UTC).date()}")
        return run.complete()


@workflow("certify/unfed")
class Unfed:
    """Needs an input that nobody gave."""

    def start(self, run: RunContext) -> object:
        return run.complete(run.input["order"])


certify_inputs = {"certify/dated": {"prefix": "today"}}
