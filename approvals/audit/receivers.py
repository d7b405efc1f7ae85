"""Anchors elsewhere: a syslog server and a webhook, which are sent each seal.

Neither can be asked later what it has. A webhook's 2xx says that it took the seals; a syslog server says nothing, over
TCP and TLS it at least closes the connection in order. Seals come in order; after an outage some may come twice, none
is left out.
"""

import json
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from django.core.exceptions import ImproperlyConfigured

from approvals.audit.hashing import SignedSeal
from runs.webhooks.addresses import AddressRefused, Target, look_up, parse
from runs.webhooks.deadlines import hanging_up, shut
from runs.webhooks.posting import NotPosted, post_to

TIMEOUT = 5.0  # seconds, for connecting to a syslog server and for all that follows; for all of a webhook
PRIORITY = 13 * 8 + 5  # RFC 5424: facility "log audit", severity "notice"
LOCAL = ("localhost", "127.0.0.1", "::1")


class NotTaken(Exception):
    """The receiver could not be reached, or did not take the seals; they are sent again."""


@dataclass(frozen=True)
class Syslog:
    """A syslog server: RFC 5424 lines, over TCP and TLS with octet counting (RFC 6587, RFC 5425)."""

    protocol: str  # unix, udp, tcp or tls
    host: str  # of a unix socket: its path
    port: int
    ca: str | None = None  # over TLS: a file with the roots that count; None for the system's

    @classmethod
    def from_setting(cls, name: str, value: str, *, ca: str = "") -> Self:
        """`/dev/log`, `udp://host:port`, `tcp://host:port` or `tls://host:port`; `ca` is the setting `name`_CA.

        Raises `ImproperlyConfigured`.
        """
        found = re.fullmatch(r"(udp|tcp|tls)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})", value)
        if not value.startswith("/") and (not found or not 0 < int(found[3]) < 65_536):
            raise ImproperlyConfigured(
                f"{name} must be a socket's path, udp://host:port, tcp://host:port or tls://host:port"
            )
        if ca and (not found or found[1] != "tls"):
            raise ImproperlyConfigured(f"{name}_CA is for tls://host:port only")
        if not found:
            return cls("unix", value, 0)
        made = cls(found[1], found[2].strip("[]"), int(found[3]), ca or None)
        if ca:
            try:
                made._tls()
            except OSError as error:
                raise ImproperlyConfigured(f"{name}_CA is no file with certificates: {error}") from error
        return made

    def send(self, seals: Sequence[SignedSeal]) -> None:
        """Raises `NotTaken`."""
        try:
            send = {"unix": self._send_unix, "udp": self._send_udp, "tcp": self._send_tcp, "tls": self._send_tls}
            send[self.protocol]([syslog_line(signed).encode() for signed in seals])
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
        with self._connected() as remote, _ends(remote):
            remote.sendall(_counted(lines))
            # Data for a server that is gone vanishes without an error: only its end of the connection tells.
            remote.shutdown(socket.SHUT_WR)
            while remote.recv(1024):
                pass

    def _send_tls(self, lines: Sequence[bytes]) -> None:
        with (
            self._connected() as plain,
            self._tls().wrap_socket(plain, server_hostname=self.host, do_handshake_on_connect=False) as remote,
            _ends(remote),
        ):
            remote.do_handshake()
            remote.sendall(_counted(lines))
            with suppress(ssl.SSLEOFError):  # it closed in order, without saying so in TLS first
                remote.unwrap()

    def _connected(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=TIMEOUT)

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca)


def _counted(lines: Sequence[bytes]) -> bytes:
    return b"".join(b"%d %b" % (len(line), line) for line in lines)


@contextmanager
def _ends(remote: socket.socket) -> Iterator[None]:
    """Raises TimeoutError."""
    late = False

    def hang_up() -> None:
        nonlocal late
        late = True
        shut(remote)

    try:
        with hanging_up(hang_up, after=TIMEOUT):
            yield
    except OSError as error:
        if late:
            raise TimeoutError(f"it was not done within {TIMEOUT:g} s") from error
        raise
    if late:
        raise TimeoutError(f"it was not done within {TIMEOUT:g} s")


@dataclass(frozen=True)
class Webhook:
    """An address that takes `{"seals": [...]}` by POST and answers with 2xx. Redirects are not followed."""

    target: Target

    @classmethod
    def from_setting(cls, name: str, value: str) -> Self:
        """An https address, or http on this machine. Raises `ImproperlyConfigured`, without the value: it may hold a
        token."""
        try:
            target = parse(value)
        except AddressRefused as error:
            raise ImproperlyConfigured(f"{name} is not an address: {error}") from error
        if not target.is_https and target.host not in LOCAL:
            raise ImproperlyConfigured(f"{name} must be https, except on this machine")
        return cls(target)

    def send(self, seals: Sequence[SignedSeal]) -> None:
        """To wherever its name leads: it is the operator's own. Raises `NotTaken`."""
        body, where = json.dumps({"seals": [as_json(signed) for signed in seals]}).encode(), self.target.host
        try:
            reply = post_to(
                self.target, body, {"Content-Type": "application/json"}, addresses_of=look_up, within=TIMEOUT
            )
        except NotPosted as error:
            raise NotTaken(f"the webhook at {where}: {error}") from error
        if not 200 <= reply.status < 300:
            raise NotTaken(f"the webhook at {where} answered {reply.status}")


Receiver = Syslog | Webhook


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
