"""What the crash tests run: for each kind of effect, a step, a gate, and a gated call, in three phases.

The `lazy` ones have further phases in between, whose boundaries their policy skips.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from typing import Any
from urllib.request import Request, urlopen

from approvals.gates import require_approval
from runs.authoring import DidNotHappen, Happened, RunContext, Tool, every, tool, workflow

KINDS = ("read", "keyed", "probe", "once")


def tell(effect: str, what: str, key: str, *, seconds: float = 0) -> str:
    """One call to the receiver, which lives in a process of its own, logs it, and answers after so many seconds."""
    body = json.dumps({"effect": effect, "what": what, "key": key, "seconds": seconds}).encode()
    request = Request(f"{os.environ['RECEIVER']}/calls", data=body, method="POST")
    with urlopen(request, timeout=10 + seconds) as response:
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


def make_workflow(kind: str, act_tool: Tool, gated_tool: Tool) -> type:
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
    return workflow(f"crash/{kind}")(Crash)


def make_lazy(kind: str, act_tool: Tool, gated_tool: Tool) -> type:
    class Lazy:
        def start(self, run: RunContext) -> object:
            return self._count(run, self.start, self.act, 4)

        def act(self, run: RunContext) -> object:
            receipt = run.step("act", act_tool, f"{run.id}-act")
            run.history.append({"role": "tool", "content": receipt})
            return self.between

        def between(self, run: RunContext) -> object:
            return self._count(run, self.between, self.gate, 8)

        def gate(self, run: RunContext) -> object:
            args = {"what": f"{run.id}-gated"}
            grant = require_approval(run, "gate", tool=gated_tool, args=args, title="Go on")
            run.state["gated"] = grant.perform(run)
            return self.after

        def after(self, run: RunContext) -> object:
            return self._count(run, self.after, self.end, 12)

        def end(self, run: RunContext) -> object:
            return run.complete({"n": run.state["n"], "history": len(run.history)})

        def _count(self, run: RunContext, again: object, on: object, until: int) -> object:
            run.state["n"] = run.state.get("n", 0) + 1
            run.now()
            return again if run.state["n"] < until else on

    Lazy.__qualname__ = f"Lazy{kind}"
    return workflow(f"lazy/{kind}", checkpoint=every(phases=10))(Lazy)


def make_slow(name: str, *, deadline: timedelta) -> type:
    """One approved call, of the kind that nobody can repeat, which takes `RECEIVER_SECONDS`."""

    @tool(effect="once", name=name, gated=True, deadline=deadline)
    def wait(what: str) -> str:
        return tell("once", what, "", seconds=float(os.environ["RECEIVER_SECONDS"]))

    class Slow:
        def start(self, run: RunContext) -> object:
            grant = require_approval(run, "gate", tool=wait, args={"what": str(run.id)}, title="Go on")
            return run.complete(grant.perform(run))

    Slow.__qualname__ = f"Slow {name}"
    return workflow(name)(Slow)


make_slow("slow", deadline=timedelta(minutes=5))
make_slow("slow/impatient", deadline=timedelta(seconds=1))


@tool(effect="read", name="crash/unkeyed")
def unkeyed(what: str) -> str:
    """A payment that its author declared repeatable."""
    return tell("unkeyed", what, "")


@workflow("crash/unkeyed")
class Unkeyed:
    def start(self, run: RunContext) -> object:
        return run.complete(run.step("act", unkeyed, f"{run.id}-act"))


for _kind in KINDS:
    _tools = make_tools(_kind, gated=False), make_tools(_kind, gated=True)
    make_workflow(_kind, *_tools)
    make_lazy(_kind, *_tools)
