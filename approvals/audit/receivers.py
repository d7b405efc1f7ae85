"""Anchors elsewhere: a syslog server and a webhook, which are sent each seal.

Neither can be asked later what it has. A webhook's 2xx says that it took the seals; a syslog server says nothing, over
TCP it at least closes the connection in order. Seals come in order; after an outage some may come twice, none is left
out.
"""

import http.client
import json
import os
import re
import socket
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from approvals.audit.hashing import SignedSeal

TIMEOUT = 5.0  # seconds, for connecting and for each answer
PRIORITY = 13 * 8 + 5  # RFC 5424: facility "log audit", severity "notice"
LOCAL = ("localhost", "127.0.0.1", "::1")


class NotTaken(Exception):
    """The receiver could not be reached, or did not take the seals; they are sent again."""


@dataclass(frozen=True)
class Syslog:
    """A syslog server: RFC 5424 lines, over TCP with octet counting (RFC 6587)."""

    protocol: str  # unix, udp or tcp
    host: str  # of a unix socket: its path
    port: int

    @classmethod
    def from_setting(cls, name: str, value: str) -> Self:
        """`/dev/log`, `udp://host:port` or `tcp://host:port`. Raises `ImproperlyConfigured`."""
        if value.startswith("/"):
            return cls("unix", value, 0)
        found = re.fullmatch(r"(udp|tcp)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", value)
        if not found or not 0 < int(found[3]) < 65_536:
            raise ImproperlyConfigured(f"{name} must be a socket's path, udp://host:port or tcp://host:port")
        return cls(found[1], found[2].strip("[]"), int(found[3]))

    def send(self, seals: Sequence[SignedSeal]) -> None:
        """Raises `NotTaken`."""
        try:
            {"unix": self._send_unix, "udp": self._send_udp, "tcp": self._send_tcp}[self.protocol](
                [syslog_line(signed).encode() for signed in seals]
            )
        except OSError as error:
            raise NotTaken(f"syslog at {self.host}: {error}") from error

    def _send_unix(self, lines: Sequence[bytes]) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as local:
            local.settimeout(TIMEOUT)
            local.connect(self.host)
            for line in lines:
                local.send(line)

    def _send_udp(self, lines: Sequence[bytes]) -> None:
        family, kind, proto, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, proto) as remote:
            remote.connect(address)
            for line in lines:
                remote.send(line)

    def _send_tcp(self, lines: Sequence[bytes]) -> None:
        with socket.create_connection((self.host, self.port), timeout=TIMEOUT) as remote:
            remote.sendall(b"".join(b"%d %b" % (len(line), line) for line in lines))
            # Data for a server that is gone vanishes without an error: only its end of the connection tells.
            remote.shutdown(socket.SHUT_WR)
            while remote.recv(1024):
                pass


@dataclass(frozen=True)
class Webhook:
    """An address that takes `{"seals": [...]}` by POST and answers with 2xx. Redirects are not followed."""

    host: str
    port: int | None
    path: str
    secure: bool

    @classmethod
    def from_setting(cls, name: str, value: str) -> Self:
        """An https address, or http on this machine. Raises `ImproperlyConfigured`, without the value: it may hold a
        token."""
        try:
            parts = urlsplit(value)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} is not an address") from error
        if not host or parts.scheme not in ("https", "http") or parts.username or parts.fragment:
            raise ImproperlyConfigured(f"{name} must be an https address, without a user or a fragment")
        if parts.scheme == "http" and host not in LOCAL:
            raise ImproperlyConfigured(f"{name} must be https, except on this machine")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        if not re.fullmatch(r"[!-~]+", path):
            raise ImproperlyConfigured(f"{name} has characters that an address cannot have")
        return cls(host, port, path, parts.scheme == "https")

    def send(self, seals: Sequence[SignedSeal]) -> None:
        """Raises `NotTaken`."""
        kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
        connection = kind(self.host, self.port, timeout=TIMEOUT)
        body = json.dumps({"seals": [as_json(signed) for signed in seals]})
        try:
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise NotTaken(f"the webhook at {self.host}: {error}") from error
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise NotTaken(f"the webhook at {self.host} answered {status}")


Receiver = Syslog | Webhook
KINDS: dict[str, Callable[[str, str], Receiver]] = {"syslog": Syslog.from_setting, "webhook": Webhook.from_setting}


def syslog_line(signed: SignedSeal) -> str:
    """One RFC 5424 message; `verify_audit --anchor` reads it back out of a log."""
    head = f"<{PRIORITY}>1 {_utc(signed.seal.at)} {socket.gethostname()[:255] or '-'} fermata {os.getpid()} seal -"
    return f"{head} seal no={signed.seal.no} digest={signed.seal.digest().hex()}"


def as_json(signed: SignedSeal) -> dict[str, str | int]:
    """The seal as docs/audit.md describes it; bytes in base64, digests in hex."""
    seal = signed.seal
    return {
        "no": seal.no,
        "digest": seal.digest().hex(),
        "prev": seal.prev.hex(),
        "first": seal.first,
        "last": seal.last,
        "root": seal.root.hex(),
        "at": _utc(seal.at),
        "key": b64encode(seal.key).decode(),
        "signature": b64encode(signed.signature).decode(),
    }


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
