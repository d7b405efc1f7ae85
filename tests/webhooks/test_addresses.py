"""Where a post may go, judged at each delivery by the address that is connected to."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import closing
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from runs.webhooks import posting
from runs.webhooks.addresses import AddressRefused, parse, resolve
from runs.webhooks.posting import NotPosted, post
from tests.support.certificates import self_signed
from tests.webhooks.conftest import Receiver

METADATA = "169.254.169.254"


def resolving_to(*answers: list[str]) -> Callable[..., Any]:
    """A name server that answers each question with the next list of addresses."""
    left = list(answers)

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        found = left.pop(0)
        kinds = [(socket.AF_INET6 if ":" in each else socket.AF_INET, each) for each in found]
        return [(family, socket.SOCK_STREAM, 6, "", (address, port)) for family, address in kinds]

    return getaddrinfo


@override_settings(FERMATA_WEBHOOK_NETWORKS=())
@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f.0.0.1/",
        "https://0177.0.0.1/",
        "https://localhost/",
        "https://0.0.0.0/",
        "https://[::]/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::127.0.0.1]/",
        "https://10.0.0.1/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://100.64.0.1/",
        "https://[fd00::1]/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
        "https://168.63.129.16/",
        f"https://{METADATA}/latest/meta-data/",
        "https://2852039166/",
        "https://0xa9fea9fe/",
        "https://0xa9.0xfe.0xa9.0xfe/",
        "https://0251.0376.0251.0376/",
        "https://169.254.43518/",
        f"https://[::ffff:{METADATA}]/",
        "https://[::ffff:a9fe:a9fe]/",
        f"https://[64:ff9b::{METADATA}]/",
        "https://[2002:a9fe:a9fe::1]/",
        "https://[fe80::1]/",
        "https://[fd00:ec2::254]/",
    ],
)
def test_internal_targets_are_refused_at_delivery(url: str) -> None:
    """C39 (mlflow/mlflow#24179)"""
    with pytest.raises(NotPosted, match="internal address"):
        post(url, b"{}", {})


@override_settings(FERMATA_WEBHOOK_NETWORKS=(ip_network("0.0.0.0/0"), ip_network("::/0")))
@pytest.mark.parametrize("host", [METADATA, f"[::ffff:{METADATA}]", "[fe80::1]"])
def test_no_setting_opens_link_local_addresses(host: str) -> None:
    with pytest.raises(AddressRefused, match="internal address"):
        resolve(parse(f"https://{host}/"))


def test_a_name_that_resolves_anew_is_judged_anew(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    """C39: checked once, then re-resolved. The name is good when it is registered, and leads inside at delivery."""
    monkeypatch.setattr(socket, "getaddrinfo", resolving_to(["127.0.0.1"], [METADATA], ["127.0.0.1", METADATA]))
    url = receiver.url.replace("127.0.0.1", "hook.test")
    resolve(parse(url))
    for _ in range(2):
        with pytest.raises(NotPosted, match="internal address"):
            post(url, b"{}", {})


def test_the_address_that_was_checked_is_the_one_connected_to(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    """C39: one look-up for each attempt; a second one, which would have led inside, is never made."""
    url = receiver.url.replace("127.0.0.1", "hook.test")
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", resolving_to(["127.0.0.1"]))
        assert post(url, b"{}", {}).status == 401  # it is not signed; but it arrived


def test_the_host_is_named_with_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving_to(["127.0.0.1"]))
    with serving(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, requests):
        assert post(f"http://hook.test:{port}/a?b=c", b"{}", {}).status == 204
    assert requests[0].startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert f"\r\nHost: hook.test:{port}\r\n".encode() in requests[0]


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    assert post(receiver.url, b"{}", {}).status == 401


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    """C39: a redirect to the metadata service."""
    answer = f"HTTP/1.1 {status} Moved\r\nLocation: http://{METADATA}/\r\nContent-Length: 0\r\n\r\n"
    with serving(answer.encode()) as (port, requests):
        assert post(f"http://127.0.0.1:{port}/", b"{}", {}).status == status
    assert len(requests) == 1


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "https:///",
        "example.com",
        "//example.com/",
        "https://user:pass@example.com/",
        "https://user@example.com/",
        "https://example.com/#there",
        "https://example.com:99999/",
        "https://example.com:x/",
        "https://exa mple.com/",
        "https://example.com/\r\nX: y",
        "https://éxample.com/",
        "https://example.com/" + "x" * 2000,
        "",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        parse(url)


@override_settings(FERMATA_WEBHOOK_NETWORKS=())
def test_public_addresses_need_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving_to(["1.1.1.1"], ["1.1.1.1", "2606:4700::1111"]))
    with pytest.raises(AddressRefused, match="https"):
        resolve(parse("http://one.test/"))
    assert [str(address) for address in resolve(parse("https://one.test/"))] == ["1.1.1.1", "2606:4700::1111"]


@override_settings(FERMATA_WEBHOOK_NETWORKS=())
def test_one_internal_address_among_public_ones_refuses_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving_to(["1.1.1.1", "10.0.0.1"]))
    with pytest.raises(AddressRefused, match="internal address"):
        resolve(parse("https://mixed.test/"))


# --- an answer without an end --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "drip"),
    [(b"", b"H"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n"), (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n")],
    ids=["a status line", "one 100 after the other", "headers"],
)
def test_an_answer_that_drips_ends_in_time(monkeypatch: pytest.MonkeyPatch, start: bytes, drip: bytes) -> None:
    monkeypatch.setattr(posting, "ALTOGETHER", 0.5)
    ended = threading.Event()

    def dripping(connection: socket.socket) -> None:
        connection.sendall(start)
        while not ended.wait(0.05):
            connection.sendall(drip)

    with serving(dripping) as (port, _):
        with pytest.raises(NotPosted, match="no answer within"):
            post(f"http://127.0.0.1:{port}/", b"{}", {})
        ended.set()


def test_a_long_answer_is_not_read() -> None:
    endless = threading.Event()

    def pouring(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not endless.is_set():
            connection.sendall(bytes(65536))

    with serving(pouring) as (port, _):
        assert post(f"http://127.0.0.1:{port}/", b"{}", {}).status == 200
        endless.set()


def test_what_is_no_http_is_a_failure() -> None:
    with serving(b"SSH-2.0-OpenSSH_9.2\r\n") as (port, _), pytest.raises(NotPosted, match="connection failed"):
        post(f"http://127.0.0.1:{port}/", b"{}", {})


# --- TLS -----------------------------------------------------------------------------------------------------------


def test_the_certificate_must_be_the_hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The connection goes to a checked address, and the certificate is still judged by the name."""
    certificate = self_signed(tmp_path, "hook.test")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(socket, "getaddrinfo", resolving_to(["127.0.0.1"], ["127.0.0.1"]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(b"HTTP/1.1 204 No Content\r\n\r\n", context) as (port, requests):
        assert post(f"https://hook.test:{port}/", b"{}", {}).status == 204
        with pytest.raises(NotPosted, match="certificate is not accepted"):
            post(f"https://other.test:{port}/", b"{}", {})
    assert len(requests) == 1


# --- servers -------------------------------------------------------------------------------------------------------


class serving:  # noqa: N801
    """A server on this machine: each connection's request is kept and answered with `answer`, bytes or a function."""

    def __init__(self, answer: bytes | Callable[[socket.socket], None], context: ssl.SSLContext | None = None) -> None:
        self._answer, self._context, self.requests = answer, context, []  # type: ignore[var-annotated]
        self._listener = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> tuple[int, list[bytes]]:
        threading.Thread(target=self._serve, daemon=True).start()
        return self._listener.getsockname()[1], self.requests

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
                if self._context:
                    connection = self._context.wrap_socket(connection, server_side=True)
            except ssl.SSLError:
                continue
            except OSError:
                return
            with closing(connection):
                self._answer_one(connection)

    @staticmethod
    def _request(connection: socket.socket) -> bytes:
        """The whole of it: a connection that is closed with something unread takes its answer back."""
        said = b""
        while data := connection.recv(65536):
            said += data
            head, ends, body = said.partition(b"\r\n\r\n")
            length = re.search(rb"Content-Length: (\d+)", head)
            if ends and len(body) >= (int(length[1]) if length else 0):
                break
        return said

    def _answer_one(self, connection: socket.socket) -> None:
        try:
            self.requests.append(self._request(connection))
            if callable(self._answer):
                self._answer(connection)
            else:
                connection.sendall(self._answer)
        except OSError:
            pass  # the other side hung up
