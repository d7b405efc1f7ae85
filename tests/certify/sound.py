"""A workflow with every kind of effect and every kind of gate, which may die anywhere."""

from __future__ import annotations

from datetime import timedelta

from approvals.gates import Proposal, require_approvals
from runs.authoring import DidNotHappen, RunContext, tool, workflow


def never(**arguments: object) -> DidNotHappen:
    raise AssertionError("a stand-in answers for the probe")


@tool(effect="read", name="certify/look", result_schema={"type": "string", "default": "seen"})
def look() -> str:
    raise AssertionError("certifying has no real effect")


@tool(effect="keyed", name="certify/charge", remembers=timedelta(hours=1))
def charge(amount: str, *, idempotency_key: str) -> str:
    raise AssertionError("certifying has no real effect")


@tool(effect="probe", name="certify/write", probe=never, deadline=timedelta(seconds=5))
def write(what: str) -> str:
    raise AssertionError("certifying has no real effect")


@tool(effect="once", name="certify/mail", gated=True, risk="high")
def mail(to: str) -> str:
    raise AssertionError("certifying has no real effect")


@workflow("certify/sound")
class Sound:
    def start(self, run: RunContext) -> object:
        assert run.input == {"to": "ada"}
        assert run.step("look", look) == "seen"
        run.state["charged"] = run.step("charge", charge, "1.00")
        run.sleep_until(run.now() + timedelta(days=1))
        run.state["written"] = run.step("write", write, run.uuid("row").hex)
        return self.finish

    def finish(self, run: RunContext) -> object:
        assert run.wait_for_event("certify/paid") == {"by": "card"}
        mails = {"mail": run.input["to"], "other": "bob"}
        proposals = [Proposal(k, mail, {"to": to}, title="Mail", groups=["nobody here"]) for k, to in mails.items()]
        grants = require_approvals(run, proposals, until="first")
        return run.complete([grant.perform(run) for grant in grants.values() if grant])


certify_samples = {
    "certify/charge": lambda amount: f"charged {amount}",
    "certify/write": "written",
    "certify/mail": {"sent": True},
    "certify/paid": {"by": "card"},
}
