"""Which requests wait, and which go straight to Django; and how all waiting ends when the server stops."""

import asyncio
import signal
import threading
from types import FrameType

from fermata.live import events, longpoll
from fermata.live.bodies import with_length
from fermata.live.hub import Hub
from fermata.live.messages import App, Receive, Scope, Send

HEALTH = frozenset({"/livez", "/readyz"})


class Router:
    """The ASGI application. `django` answers everything that does not wait, `aside` what is asked about health."""

    def __init__(self, django: App, aside: App) -> None:
        self._django = django
        self._aside = aside
        self._hub = Hub()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] != "http":
            await self._django(scope, receive, send)
        elif scope["path"] in HEALTH:
            await self._aside(scope, receive, send)
        elif scope["path"] == events.PATH and scope["method"] == "GET":
            await events.serve(self._django, self._hub, scope, receive, send)
        elif poll := longpoll.wanted(scope):
            await longpoll.serve(self._django, self._hub, scope, receive, send, of=poll[0], seconds=poll[1])
        else:
            await with_length(self._django, scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._hub.open()
                if threading.current_thread() is threading.main_thread():
                    for number in (signal.SIGTERM, signal.SIGINT):
                        self._end_waiting_at(number)
                await send({"type": "lifespan.startup.complete"})
            else:
                self._hub.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _end_waiting_at(self, number: signal.Signals) -> None:
        """uvicorn stops when every request is answered: answer those that wait, then do what it wanted to do."""
        before = signal.getsignal(number)
        loop = asyncio.get_running_loop()

        def stop(received: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._hub.close)
            if callable(before):
                before(received, frame)

        signal.signal(number, stop)
