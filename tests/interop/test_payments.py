"""The examples' payment tool, before a provider that pays and then fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.models import Approval
from runs.engine.executor import execute
from runs.models import Agent, RunHead
from runs.services.starting import start_run
from tests.approvals.scenes import cast

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def provider(settings: Any) -> Iterator[list[str]]:
    """Pays at once, and answers 503 the first time. The keys of its calls, in order."""
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            keys.append(self.headers["Idempotency-Key"])
            body = json.dumps({"refund": "rf-1"}).encode()
            self.send_response(503 if len(keys) == 1 else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    settings.PAYMENTS_URL = f"http://127.0.0.1:{server.server_address[1]}"
    yield keys
    server.shutdown()
    server.server_close()


def test_a_503_after_the_payment_does_not_pay_again(provider: list[str], agent: Agent, reviewer: User) -> None:
    """C12: what answers 503 may have paid before it failed, so only the same key may come again."""
    run = start_run(agent=agent, workflow="refund-agent", input={"order_id": "A-7", "amount": "49.90"})
    execute(run.id, worker="test")
    cast(Approval.objects.get(run=run), reviewer)
    while RunHead.objects.get(run=run).status == "queued":
        RunHead.objects.filter(run=run).update(wake_at=None)
        execute(run.id, worker="test")
    assert RunHead.objects.get(run=run).status == "completed"
    assert len(provider) == 2
    assert len({*provider}) == 1
