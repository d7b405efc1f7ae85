"""What Fermata runs in the benchmark."""

import os
import time
from datetime import timedelta

from approvals.gates import require_approval
from benchmarks.payload import pay, random_text
from runs.authoring import RunContext, tool, workflow


@tool(effect="read", name="benchmark/payload")
def payload() -> str:
    return random_text()


@tool(effect="once", name="benchmark/pay", gated=True)
def payment(run: str) -> None:
    pay(os.environ["DATABASE_URL"], run)


@workflow("benchmark-steps")
class Steps:
    """A durable step a turn, whose 1 kB also goes into the history; `input` turns."""

    def start(self, run: RunContext) -> object:
        run.history.append(run.step("payload", payload))
        return self.start if len(run.history) < run.input else self.end

    def end(self, run: RunContext) -> object:
        return run.complete()


@workflow("benchmark-history")
class History:
    """1 kB more of history a turn; `input` turns."""

    def start(self, run: RunContext) -> object:
        run.history.append(random_text())
        return self.start if len(run.history) < run.input else self.end

    def end(self, run: RunContext) -> object:
        return run.complete()


@workflow("benchmark-gate")
class Gate:
    """10 kB of state and a gate; the result is when the code behind the gate began. `input`: pay as well."""

    def start(self, run: RunContext) -> object:
        run.state["data"] = random_text(10_000)
        return self.ask

    def ask(self, run: RunContext) -> object:
        grant = require_approval(
            run,
            "pay",
            tool=payment,
            args={"run": str(run.id)},
            title="Pay",
            expires_in=timedelta(hours=1),
        )
        at = time.time()
        if run.input:
            grant.perform(run)
        return run.complete(at)
