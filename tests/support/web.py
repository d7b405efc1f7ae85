"""The web process as it is deployed: uvicorn, in a process of its own, on the test database."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.processes import Process
from tests.support.waiting import until


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Web(Process):
    def __init__(self, *, log: Path, **extra: str) -> None:
        self.port = _free_port()
        super().__init__(
            *("-m", "uvicorn", "fermata.asgi:application", "--port", str(self.port), "--no-access-log"),
            log=log,
            **{"PORT": str(self.port), **extra},
        )

    def wait_until_ready(self) -> Web:
        until(lambda: self._answers() or not self.running, what="a web process that answers")
        assert self.running, self.output()
        return self

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        with self.opened(method, path, body, **headers) as response:
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    @contextmanager
    def opened(
        self, method: str, path: str, body: Any = None, *, seconds: float = 30, **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        """A response whose body is still to be read."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named, encode_chunked="Transfer-Encoding" in named)
            yield connection.getresponse()

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def _answers(self) -> bool:
        try:
            return self.ask("GET", "/livez").status == 200
        except OSError:
            return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
