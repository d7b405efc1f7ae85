"""What the crash tests run: for each kind of effect, a step, a gate, and a gated call, in three phases."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any
from urllib.request import Request, urlopen

from approvals.gates import require_approval
from runs.authoring import DidNotHappen, Happened, RunContext, Tool, tool, workflow

KINDS = ("read", "keyed", "probe", "once")


def tell(effect: str, what: str, key: str) -> str:
    """One call to the receiver, which lives in a process of its own and logs it."""
    body = json.dumps({"effect": effect, "what": what, "key": key}).encode()
    request = Request(f"{os.environ['RECEIVER']}/calls", data=body, method="POST")
    with urlopen(request, timeout=10) as response:
        return str(json.load(response)["receipt"])


def happened(what: str, *, idempotency_key: str) -> Happened | DidNotHappen:
    with urlopen(f"{os.environ['RECEIVER']}/calls/{what}", timeout=10) as response:
        receipt = json.load(response)["receipt"]
    return Happened(receipt) if receipt else DidNotHappen()


def make_tools(kind: str, *, gated: bool) -> Tool:
    name = f"crash/{kind}{'-gated' if gated else ''}"

    def plain(what: str) -> str:
        return tell(kind, what, "")

    def keyed(what: str, *, idempotency_key: str) -> str:
        return tell(kind, what, idempotency_key)

    options: dict[str, Any] = {"effect": kind, "name": name, "gated": gated, "deadline": timedelta(seconds=5)}
    if kind == "keyed":
        return tool(remembers=timedelta(hours=24), **options)(keyed)
    if kind == "probe":
        return tool(probe=happened, **options)(plain)
    return tool(**options)(plain)


def make_workflow(kind: str) -> None:
    act_tool, gated_tool = make_tools(kind, gated=False), make_tools(kind, gated=True)

    class Crash:
        def start(self, run: RunContext) -> object:
            run.state["n"] = 1
            return self.act

        def act(self, run: RunContext) -> object:
            receipt = run.step("act", act_tool, f"{run.id}-act")
            run.history.append({"role": "tool", "content": receipt})
            return self.gate

        def gate(self, run: RunContext) -> object:
            args = {"what": f"{run.id}-gated"}
            grant = require_approval(run, "gate", tool=gated_tool, args=args, title="Go on")
            run.state["gated"] = grant.perform(run)
            return self.end

        def end(self, run: RunContext) -> object:
            return run.complete({"history": len(run.history), "gated": run.state["gated"]})

    Crash.__qualname__ = f"Crash{kind}"
    workflow(f"crash/{kind}")(Crash)


for _kind in KINDS:
    make_workflow(_kind)
