"""`refund-agent`: look an order up, ask a human, refund once."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from approvals.gates import posted_approvals, require_approval
from examples.payments import post_refund
from runs.authoring import RunContext, StepFailed, entry, tool, workflow


@tool(effect="read")
def load_order(order_id: str, amount: str | float) -> dict[str, Any]:
    """The order, from wherever orders are kept; here, from what the run was given."""
    return {"id": order_id, "amount": amount}


@tool(
    effect="keyed",
    remembers=timedelta(hours=24),
    gated=True,
    risk="high",
    deadline=timedelta(seconds=60),
    args_schema={
        "type": "object",
        "properties": {
            "order": {"type": "string", "minLength": 1},
            "amount": {"type": ["string", "number"], "pattern": r"^[0-9]+(\.[0-9]{1,2})?$", "exclusiveMinimum": 0},
        },
        "required": ["order", "amount"],
        "additionalProperties": False,
    },
)
def refund(order: str, amount: str | int | Decimal, *, idempotency_key: str) -> dict[str, Any]:
    """Pay the amount back. The provider drops a repeated key."""
    return post_refund(order_id=order, amount=str(amount), idempotency_key=idempotency_key)


@workflow("refund-agent", schema=1)
class RefundAgent:
    def start(self, run: RunContext) -> object:
        if not {"order_id", "amount"} <= set(run.input or {}):
            raise StepFailed("the input needs order_id and amount")
        run.state["order"] = run.step("load order", load_order, run.input["order_id"], run.input["amount"])
        run.history.append({"role": "user", "content": f"Please refund order {run.state['order']['id']}."})
        return self.propose

    def propose(self, run: RunContext) -> object:
        order = run.state["order"]
        grant = require_approval(
            run,
            "refund",
            tool=refund,
            args={"order": order["id"], "amount": order["amount"]},
            title=f"Refund order {order['id']}",
            description="The customer says that the parcel arrived damaged and sent a photo.",
            risk="high",
            expires_in=timedelta(hours=24),
        )
        if not grant:  # rejected, expired or answered instead
            return run.complete({"refunded": False, "why": grant.message})
        receipt = grant.perform(run)
        run.history.append({"role": "tool", "content": receipt})
        return run.complete({"refunded": True, "receipt": receipt})

    @entry(external=True)
    def act(self, run: RunContext) -> object:
        """Where an agent that lives elsewhere comes in: it posted its snapshot and what it wants to do."""
        results: dict[str, Any] = {}
        for key, grant in posted_approvals(run).items():
            results[key] = grant.perform(run) if grant else {"outcome": grant.outcome.value, "why": grant.message}
            run.history.append({"role": "tool", "tool_call_id": key, "content": results[key]})
        return run.complete(results)


# For `manage.py certify examples.refunds`: what the run is given, and what the tools' stand-ins give back.
certify_inputs = {"refund-agent": {"order_id": "A-7", "amount": "49.90"}}
certify_samples = {"load_order": load_order.fn, "refund": {"refund": "rf-1", "order_id": "A-7", "amount": "49.90"}}
