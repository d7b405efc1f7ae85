"""The independent receiver: a process of its own that writes down every call before it answers.

POST /calls {"effect", "what", "key", "seconds"?} → {"receipt"}, after so many seconds; GET /calls → every call;
GET /calls/WHAT → {"receipt"} or null.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CALLS: list[dict[str, Any]] = []
LOCK = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOCK:
            CALLS.append(call)
        time.sleep(call.get("seconds", 0))
        self.answer({"receipt": f"receipt-{call['what']}"})

    def do_GET(self) -> None:
        what = self.path.removeprefix("/calls").removeprefix("/")
        with LOCK:
            found = [call for call in CALLS if not what or call["what"] == what]
        self.answer(found if not what else {"receipt": f"receipt-{what}" if found else None})

    def answer(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
