"""One HTTP request to an address that is known: no proxy, no redirect, no end that the other side decides."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from runs.webhooks.addresses import Address, AddressRefused, Target, parse, resolve
from runs.webhooks.deadlines import hanging_up, shut

ALTOGETHER = 10.0  # seconds, from the first connection to the answer's head
MOST_RETRY_AFTER = 86_400.0  # seconds


@dataclass(frozen=True)
class Reply:
    """What came back: its status, how long the receiver asked to be left alone (seconds), and its first bytes."""

    status: int
    retry_after: float | None = None
    body: bytes = b""


@dataclass
class NotPosted(Exception):
    """No answer came; `why` says what did. The receiver may have got the post all the same."""

    why: str

    def __str__(self) -> str:
        return self.why


def post(url: str, body: bytes, headers: dict[str, str], *, read: int = 0) -> Reply:
    """Send `body` where a post may go and wait for the answer, of which at most `read` bytes are read.

    Raises NotPosted.
    """
    try:
        return post_to(parse(url), body, headers, addresses_of=resolve, within=ALTOGETHER, read=read)
    except AddressRefused as error:
        raise NotPosted(f"refused: {error}") from error


def post_to(
    target: Target,
    body: bytes,
    headers: dict[str, str],
    *,
    addresses_of: Callable[[Target], Sequence[Address]],
    within: float,
    read: int = 0,
) -> Reply:
    """The same to one of the addresses that `addresses_of` gives, and may refuse, in at most `within` seconds from the
    first connection. Raises NotPosted."""
    try:
        addresses = addresses_of(target)
    except (OSError, UnicodeError) as error:
        raise NotPosted(f"its name cannot be resolved ({type(error).__name__})") from error
    connection = _Pinned(target, addresses, within)
    try:
        with hanging_up(connection.hang_up, after=within):
            connection.request("POST", target.path, body, {"User-Agent": "Fermata", "Connection": "close", **headers})
            response = connection.getresponse()
            answer = response.read(read)
            if connection.is_late:
                raise TimeoutError  # hung up on, and what came before looks like a whole answer
            return Reply(response.status, _retry_after(response.headers.get("Retry-After")), answer)
    except TimeoutError as error:
        raise NotPosted(f"no answer within {within:g} s") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        if connection.is_late:
            raise NotPosted(f"no answer within {within:g} s") from error
        raise NotPosted(_said(error)) from error
    finally:
        connection.close()


class _Pinned(http.client.HTTPConnection):
    """Speaks to `addresses` in the name of the target's host: in `Host`, in TLS's SNI and against its certificate."""

    def __init__(self, target: Target, addresses: Sequence[Address], within: float) -> None:
        super().__init__(target.host, target.port, timeout=within)
        self.default_port = 443 if target.is_https else 80
        self.is_late = False
        self._target, self._addresses = target, addresses
        self._deadline = time.monotonic() + within

    def connect(self) -> None:
        self.sock = self._connected()
        if self._target.is_https:
            self.sock = ssl.create_default_context().wrap_socket(
                self.sock, server_hostname=self._target.host, do_handshake_on_connect=False
            )
        if self.is_late:
            raise TimeoutError
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock.do_handshake()

    def hang_up(self) -> None:
        """End a request whose time is over, from another thread, whatever it waits for."""
        self.is_late = True
        if self.sock is not None:
            shut(self.sock)

    def _connected(self) -> socket.socket:
        refused: OSError = TimeoutError()
        for address in self._addresses:
            left = self._deadline - time.monotonic()
            if left <= 0:
                break
            connected = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
            connected.settimeout(left)
            try:
                connected.connect((str(address), self._target.port))
            except OSError as error:
                refused = error
                connected.close()
            else:
                return connected
        raise refused


def _retry_after(text: str | None) -> float | None:
    """Seconds, from either form of the header; None for what is neither."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MOST_RETRY_AFTER)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - datetime.now(UTC)).total_seconds(), 0.0), MOST_RETRY_AFTER)


def _said(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ConnectionRefusedError):
        return "the connection was refused"
    return f"the connection failed ({type(error).__name__})"
