"""Bodies sent in chunks. WSGI needs a length, so they are read here, up to the limit."""

from django.conf import settings

from fermata.live.messages import App, Message, Receive, Scope, Send
from fermata.problems import problem_response


async def with_length(app: App, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass the request on; one without `Content-Length` gets the length of its body."""
    if not any(name == b"transfer-encoding" for name, _ in scope["headers"]):
        await app(scope, receive, send)
        return
    body = bytearray()
    more = True
    while more and len(body) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if more:
        await _too_large(send)
        return
    headers = [pair for pair in scope["headers"] if pair[0] not in (b"transfer-encoding", b"content-length")]
    headers.append((b"content-length", str(len(body)).encode()))

    async def read() -> Message:
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    await app({**scope, "headers": headers}, read, send)


async def _too_large(send: Send) -> None:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    answer = problem_response(413, code="request_too_large", detail=f"The request body is larger than {limit} bytes.")
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.items()]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
