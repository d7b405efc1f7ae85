"""`GET /api/v1/approvals/ID?wait=SECONDS`: the answer as soon as it is decided, and without it at the end."""

import asyncio
import json
import re
from urllib.parse import parse_qs

from fermata.live.hub import Hub
from fermata.live.messages import Answer, App, Client, Receive, Scope, Send, ask

LONGEST = 60  # seconds, as `approvals.serializers.ApprovalWait` says
_PATH = re.compile(r"/api/v1/approvals/([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})")


def wanted(scope: Scope) -> tuple[str, float] | None:
    """The approval's id and the seconds to wait, if this request is a long poll.

    Anything that is not quite one goes to the view, which says what is wrong with it.
    """
    match = _PATH.fullmatch(scope["path"]) if scope["method"] == "GET" else None
    wait = parse_qs(scope["query_string"].decode("latin1")).get("wait", [""])[0]
    if match is None or not (wait.isascii() and wait.isdigit() and 0 < int(wait) <= LONGEST):
        return None
    return match[1], float(wait)


async def serve(app: App, hub: Hub, scope: Scope, receive: Receive, send: Send, *, of: str, seconds: float) -> None:
    """Ask the view again at each change, so that every answer is authorised as any other."""
    until = asyncio.get_running_loop().time() + seconds
    async with Client(receive) as client:
        with hub.waiting(("approval", of)) as waiter:  # before the first look: nothing can fall between
            while True:
                waiter.take()
                answer = await ask(app, scope)
                left = until - asyncio.get_running_loop().time()
                if left <= 0 or hub.closed or not _is_pending(answer):
                    break
                if not await client.stays_for(waiter.wait(left)):
                    return
    await answer.send(send)


def _is_pending(answer: Answer) -> bool:
    return answer.status == 200 and json.loads(answer.body)["status"] == "pending"
