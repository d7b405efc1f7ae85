"""`GET /live`: server-sent events for the pages of a signed-in person.

    event: approval        event: run
    data: <id>             data: <id>

The id says that this approval or run changed and that the person may see it; the page fetches what it shows. `data: *`
says that something was missed: fetch everything again. At most two bursts a second. What may be seen is asked before
every burst, and the stream ends with the session.
"""

import asyncio
import json
from urllib.parse import urlencode

from fermata.live.hub import EVERYTHING, Change, Hub
from fermata.live.messages import Answer, App, Client, Receive, Scope, Send, ask

PATH = "/live"
VISIBLE = "/live/visible"
BURST = 0.5  # seconds
QUIET = 15.0  # seconds: then a comment, so that proxies keep the line and a dead client or session is noticed

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


async def serve(app: App, hub: Hub, scope: Scope, receive: Receive, send: Send) -> None:
    async with Client(receive) as client:
        with hub.waiting() as waiter:
            allowed = await _visible(app, scope, set())
            if allowed.status != 200:
                await allowed.send(send)
                return
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await _write(send, "retry: 2000\n\n")
            while await client.stays_for(waiter.wait(QUIET)) and not hub.closed:
                await asyncio.sleep(BURST)
                changes = waiter.take()
                allowed = await _visible(app, scope, changes)
                if allowed.status != 200:
                    break
                await _write(send, _told(changes, allowed))
    await send({"type": "http.response.body", "body": b""})


async def _visible(app: App, scope: Scope, changes: set[Change]) -> Answer:
    """Ask Django, with the client's own cookies, which of these the person may see."""
    query = urlencode(sorted(changes - {EVERYTHING}))
    return await ask(app, {**scope, "path": VISIBLE, "raw_path": VISIBLE.encode(), "query_string": query.encode()})


def _told(changes: set[Change], allowed: Answer) -> str:
    if EVERYTHING in changes:
        return "event: approval\ndata: *\n\nevent: run\ndata: *\n\n"
    events = [f"event: {kind}\ndata: {changed}\n\n" for kind, changed in json.loads(allowed.body)["visible"]]
    return "".join(events) or ":\n\n"


async def _write(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
