"""An agent that lives elsewhere: it posts its snapshot and a question, and waits for what comes of it.

Its key is in `FERMATA_KEY`, the address of Fermata in `FERMATA_URL` (http://127.0.0.1:8000).
"""

import json
import os
import sys
import time
import uuid
from typing import Any
from urllib.request import Request, urlopen

BASE = os.environ.get("FERMATA_URL", "http://127.0.0.1:8000")
ENDS = {"completed", "failed", "cancelled"}


def call(path: str, body: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    request = Request(  # noqa: S310 - the address is the caller's own
        f"{BASE}/api/v1/{path}",
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {os.environ['FERMATA_KEY']}", "Content-Type": "application/json", **headers},
    )
    with urlopen(request) as response:  # noqa: S310
        answer: dict[str, Any] = json.load(response)
        return answer


def main() -> None:
    order = uuid.uuid4().hex[:8]
    suspension = {
        "run": {"external_id": f"order-{order}", "title": "Refund agent"},
        "snapshot": {"schema": "refund-agent/1", "state": {}, "history": [], "position": {}, "pending": []},
        "approvals": [
            {
                "key": "call_1",
                "tool": "refund",
                "args": {"order": order, "amount": "49.90"},
                "title": f"Refund order {order}",
                "description": "The parcel arrived broken.",
                "risk": "high",
            }
        ],
        "resume": {"mode": "workflow", "workflow": "refund-agent", "phase": "act"},
    }
    parked = call("suspensions", suspension, **{"Idempotency-Key": f"order-{order}"})
    sys.stdout.write(f"decide at {parked['approvals'][0]['inbox_url']}\n")
    while (run := call(f"runs/{parked['run']['id']}"))["status"] not in ENDS:
        time.sleep(1)
    sys.stdout.write(json.dumps(run.get("result") or run.get("error"), indent=2) + "\n")


if __name__ == "__main__":
    main()
