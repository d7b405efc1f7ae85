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

from django.db import connection

from fermata.live.hub import CHANNELS
from tests.support.processes import Process
from tests.support.waiting import until

LISTENING = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND query = %s AND state = 'idle'"
LAST_CHANNEL = [*CHANNELS][-1]


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
        self._name = f"web-{self.port}"
        super().__init__(
            *("-m", "uvicorn", "fermata.asgi:application", "--port", str(self.port), "--no-access-log"),
            log=log,
            **{"PORT": str(self.port), "PGAPPNAME": self._name, **extra},
        )

    def wait_until_ready(self) -> Web:
        until(lambda: self._answers() or not self.running, what="a web process that answers")
        assert self.running, self.output()
        return self

    def wait_until_it_listens(self) -> Web:
        """It answers before it listens to the database, and who asks at once is told to look at everything."""
        until(self._listens, what="a web process that listens to the database")
        return self

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Reply:
        with self.opened(method, path, body, **headers) as response:
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    @contextmanager
    def opened(
        self, method: str, path: str, body: Any = None, *, seconds: float = 30, **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        """A response whose body is still to be read."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)) as server:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            server.request(method, path, body, named, encode_chunked="Transfer-Encoding" in named)
            yield server.getresponse()

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    def _answers(self) -> bool:
        try:
            return self.ask("GET", "/livez").status == 200
        except OSError:
            return False

    def _listens(self) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(LISTENING, [self._name, f"LISTEN {LAST_CHANNEL}"])
            return cursor.fetchone() == (1,)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
