"""An agent's receiver: a process of its own that checks each signature, as the reference library does, and writes down
what came before it answers.

POST /hook: the webhook. POST /control {"secret"?, "answers"?: [{"status", "headers"?, "hold"?}]} sets what it answers
next, then 204 for ever; `hold` waits for POST /release first. GET /received: everything that came.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

STATE: dict[str, Any] = {"secret": "whsec_bm9uZQ==", "answers": [], "received": []}
LOCK, RELEASED = threading.Lock(), threading.Event()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/control":
            RELEASED.clear()
            STATE.update(json.loads(body))
            self.answer(200)
        elif self.path == "/release":
            RELEASED.set()
            self.answer(200)
        else:
            self.hook(body)

    def hook(self, body: bytes) -> None:
        try:
            said = Webhook(STATE["secret"]).verify(body, dict(self.headers))
        except (WebhookVerificationError, ValueError):
            self.answer(401)
            return
        if said["type"] == "webhook.verification" and not STATE["answers"]:
            self.answer(200, body={"challenge": said["data"]["challenge"]})
            return
        with LOCK:
            STATE["received"].append(
                {"id": self.headers["webhook-id"], "host": self.headers["Host"], "path": self.path, **said}
            )
            answer = STATE["answers"].pop(0) if STATE["answers"] else {}
        if answer.get("hold"):
            RELEASED.wait(60)
        self.answer(answer.get("status", 204), answer.get("headers"), answer.get("body"))

    def do_GET(self) -> None:
        with LOCK:
            self.answer(200, body=STATE["received"])

    def answer(self, status: int, headers: dict[str, str] | None = None, body: Any = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
