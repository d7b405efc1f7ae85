"""What the stand-in starts. With STAND_IN_STUBBORN=1 the worker ignores SIGTERM."""

import http.server
import os
import signal
import subprocess
import sys
import time


class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


def web(port: str) -> None:
    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Ready).serve_forever()


def worker() -> None:
    if os.environ.get("STAND_IN_STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"])  # a process of its own, as a prefork pool has
    print("the worker works", flush=True)
    time.sleep(1000)


def manage(command: str) -> None:
    print(f"manage {command}", flush=True)


if __name__ == "__main__":
    {"web": web, "worker": worker, "manage": manage}[sys.argv[1]](*sys.argv[2:])
