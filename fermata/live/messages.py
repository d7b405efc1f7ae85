"""The few words of ASGI that are needed here."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Answer:
    """A whole response of the application inside."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


async def ask(app: App, scope: Scope) -> Answer:
    """Put a request without a body to the application inside, and collect its answer."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    return Answer(start["status"], start["headers"], b"".join(message.get("body", b"") for message in sent[1:]))


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Client:
    """Notices when the client goes away while something else is awaited."""

    def __init__(self, receive: Receive) -> None:
        self._gone = asyncio.ensure_future(disconnected(receive))

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._gone.cancel()

    async def stays_for(self, awaitable: Awaitable[object]) -> bool:
        """Await it, unless the client goes first. False: the client is gone."""
        task = asyncio.ensure_future(awaitable)
        try:
            await asyncio.wait({task, self._gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
        return not self._gone.done()
