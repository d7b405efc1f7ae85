"""Workflows that the engine's tests run. `CALLS` counts what their tools did in this process."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from approvals.gates import Proposal, require_approval, require_approvals
from runs.authoring import NotPerformed, RunContext, StepFailed, tool, workflow
from runs.engine.connection import engine_connection

OPEN_TRANSACTIONS = """
    SELECT (now() <> statement_timestamp())::int + count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'
"""
CALLS: Counter[str] = Counter()
SWITCH: dict[str, Any] = {}  # what a test wants the code to do differently at the next try


def watch_transactions() -> None:
    """Count the transactions that are open while a tool runs: this connection's, and any other's in the database."""
    if SWITCH.get("watch"):
        CALLS["watched"] += 1
        row = engine_connection().execute(OPEN_TRANSACTIONS).fetchone()
        CALLS["in a transaction"] += row[0] if row else 0


@tool(effect="read", name="test/look")
def look(what: str) -> str:
    CALLS[f"look {what}"] += 1
    return f"seen {what}"


@tool(effect="keyed", name="test/send", remembers=timedelta(hours=1))
def send(what: str, *, idempotency_key: str) -> str:
    watch_transactions()
    CALLS[f"send {what}"] += 1
    CALLS[f"key {idempotency_key}"] += 1
    if SWITCH.get("send") == "not performed":
        raise NotPerformed("503")
    if SWITCH.get("send") == "refuse":
        raise StepFailed("no such account")
    if SWITCH.get("send") == "break":
        raise RuntimeError("the line went dead")
    return f"sent {what}"


@tool(effect="once", name="test/mail")
def mail(what: str) -> str:
    CALLS[f"mail {what}"] += 1
    if SWITCH.get("mail") == "break":
        raise RuntimeError("the line went dead")
    return f"mailed {what}"


@tool(effect="keyed", name="test/pay", remembers=timedelta(hours=1), gated=True)
def pay(amount: str, *, idempotency_key: str) -> str:
    watch_transactions()
    CALLS[f"pay {amount}"] += 1
    if SWITCH.get("pay") == "not performed":
        raise NotPerformed("503")
    return f"paid {amount}"


@workflow("test/steps")
class Steps:
    def start(self, run: RunContext) -> object:
        run.state["looked"] = run.step("look", look, "a")
        return self.act

    def act(self, run: RunContext) -> object:
        run.history.append({"role": "assistant", "content": "sending"})
        run.state["sent"] = [run.step("send", send, what, each=what) for what in ("x", "y")]
        return run.complete({"looked": run.state["looked"], "sent": run.state["sent"]})


@workflow("test/branches")
class Branches:
    """Takes another branch at the second try, if the test says so."""

    def start(self, run: RunContext) -> object:
        if SWITCH.get("branch") == "other":
            run.step("other", send, "other")
        else:
            run.step("first", send, SWITCH.get("argument", "first"))
        run.wait_for_event("go")
        return run.complete()


@workflow("test/gate")
class Gate:
    def start(self, run: RunContext) -> object:
        run.state["before"] = run.step("before", send, "before")
        run.history.append({"role": "assistant", "content": "may I?"})
        grant = ask(run, "pay", SWITCH.get("amount", "1.00"))
        if not grant:
            return run.complete({"outcome": grant.outcome.value, "why": grant.message})
        return run.complete({"receipt": grant.perform(run), "history": len(run.history)})


@workflow("test/three-gates")
class ThreeGates:
    """Three gates one after the other in a single phase, as in langgraph#7780."""

    def start(self, run: RunContext) -> object:
        run.step("k1", send, "k1")
        answers = [ask(run, f"gate{n}", f"{n}.00") for n in (1, 2, 3)]
        return run.complete([answer.outcome.value for answer in answers])


@workflow("test/gate-group")
class GateGroup:
    """Several calls at one gate, answered by key."""

    def start(self, run: RunContext) -> object:
        calls = {"call_1": "1.00", "call_2": "2.00", "call_3": "3.00"}
        answers = require_approvals(
            run,
            [Proposal(key, pay, {"amount": amount}, title=f"Pay {amount}") for key, amount in calls.items()],
        )
        results = {k: a.perform(run) if a else f"not done: {a.message}" for k, a in answers.items()}
        return run.complete(results)


@workflow("test/first-answer")
class FirstAnswer:
    """Alternatives, of which the first answer takes one; the last of them may change its amount."""

    def start(self, run: RunContext) -> object:
        calls = {"call_1": "1.00", "call_2": "2.00", "call_3": SWITCH.get("amount", "3.00")}
        answers = require_approvals(
            run,
            [Proposal(key, pay, {"amount": amount}, title=f"Pay {amount}") for key, amount in calls.items()],
            until="first",
        )
        run.state["paid"] = [a.perform(run) for a in answers.values() if a]
        return run.complete({"paid": run.state["paid"], **{key: a.outcome.value for key, a in answers.items()}})


@workflow("test/gate-loop")
class GateLoop:
    """A gate in a loop: a phase that names itself, so every turn has its own gate of the same key."""

    def start(self, run: RunContext) -> object:
        run.state["paid"] = []
        return self.pay_next

    def pay_next(self, run: RunContext) -> object:
        amount = f"{len(run.state['paid']) + 1}.00"
        grant = ask(run, "pay", amount)
        run.state["paid"].append(grant.perform(run))
        return self.pay_next if len(run.state["paid"]) < 3 else self.end

    def end(self, run: RunContext) -> object:
        return run.complete(run.state["paid"])


@workflow("test/mail")
class Mail:
    def start(self, run: RunContext) -> object:
        return run.complete(run.step("mail", mail, "hello"))


@workflow("test/swallows")
class Swallows:
    """Catches everything, the engine's signals too, and goes on as if nothing had happened."""

    def start(self, run: RunContext) -> object:
        try:
            run.wait_for_event("go")
        except BaseException:
            CALLS["swallowed"] += 1
        try:
            run.step("after", send, "after the gate")
        except BaseException:
            CALLS["refused"] += 1
        return run.complete("done anyway")


def ask(run: RunContext, key: str, amount: str) -> Any:
    return require_approval(run, key, tool=pay, args={"amount": amount}, title=f"Pay {amount}")
