"""Anchors elsewhere, with real listeners: every seal arrives in order, at least once, whatever went wrong before."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import DataError, connection
from pytest_django import Settings

from approvals.audit import anchoring, receivers
from approvals.audit.anchoring import anchor_due
from approvals.audit.receivers import NotTaken, Syslog, Webhook
from approvals.audit.records import seals
from approvals.audit.sealing import TrailRewritten, seal_due
from approvals.models import AuditAnchored
from approvals.tasks import anchor
from runs.clock import database_now
from tests.approvals.audit.conftest import unguarded
from tests.support.certificates import self_signed
from tests.support.processes import ROOT, environment

pytestmark = pytest.mark.django_db(transaction=True)

LINE = re.compile(
    r"<109>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S+ fermata \d+ seal - seal no=(\d+) digest=([0-9a-f]{64})"
)


def sealed(write: Callable[..., str], count: int = 1) -> list[tuple[int, str]]:
    """Make so many seals; all that there are, as numbers and digests."""
    for _ in range(count):
        write()
        seal_due()
    return [(signed.seal.no, signed.seal.digest().hex()) for signed in seals()]


def parsed(lines: str) -> list[tuple[int, str]]:
    return [(int(no), digest) for no, digest in LINE.findall(lines)]


class Hook:
    """A web server that keeps what it is sent, and answers as it is told to."""

    def __init__(self) -> None:
        self.status, self.taken, self.paths = 200, [], []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.paths.append(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if hook.status == 200:
                    hook.taken.append(json.loads(body)["seals"])
                self.send_response(hook.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/seals?token=t0ken"

    def numbers(self) -> list[int]:
        return [seal["no"] for batch in self.taken for seal in batch]


@pytest.fixture
def hook(settings: Settings) -> Iterator[Hook]:
    served = Hook()
    settings.FERMATA_AUDIT_ANCHOR_WEBHOOK = served.url
    yield served
    served.server.shutdown()
    served.server.server_close()


class Log:
    """A syslog server on TCP, or TLS, that can go away, and come back on the same port."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.text, self.port, self.tls = "", 0, None
        if certificate is not None:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(certificate)
        self.open()

    def open(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, args=(self.listener,), daemon=True).start()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # whoever does not trust it hangs up
                if self.tls is not None:
                    connection = self.tls.wrap_socket(connection, server_side=True)
                while data := connection.recv(65_536):
                    self.text += data.decode()
                connection.close()


@pytest.fixture
def log(settings: Settings) -> Iterator[Log]:
    served = Log()
    settings.FERMATA_AUDIT_ANCHOR_SYSLOG = f"tcp://127.0.0.1:{served.port}"
    yield served
    served.close()


def test_a_syslog_server_gets_a_line_for_each_seal(write: Callable[..., str], log: Log) -> None:
    made = sealed(write, 3)

    assert anchor_due() == 3

    assert parsed(log.text) == made
    for counted in re.findall(r"(\d+) (<109>.*?digest=[0-9a-f]{64})", log.text):
        assert int(counted[0]) == len(counted[1])
    assert anchor_due() == 0


@pytest.mark.parametrize("kind", ["unix", "udp"])
def test_datagrams(write: Callable[..., str], settings: Settings, tmp_path: Path, kind: str) -> None:
    family = socket.AF_UNIX if kind == "unix" else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_DGRAM)) as listener:
        listener.settimeout(10)
        listener.bind(str(tmp_path / "log") if kind == "unix" else ("127.0.0.1", 0))
        at = listener.getsockname()
        settings.FERMATA_AUDIT_ANCHOR_SYSLOG = at if kind == "unix" else f"udp://127.0.0.1:{at[1]}"
        made = sealed(write, 2)

        assert anchor_due() == 2

        assert parsed("\n".join(listener.recv(2000).decode() for _ in made)) == made


def test_after_an_outage_of_the_syslog_server_nothing_is_left_out(write: Callable[..., str], log: Log) -> None:
    sealed(write)
    anchor_due()
    log.close()
    sealed(write, 2)
    assert anchor_due() == 0

    log.open()
    made = sealed(write)
    assert anchor_due() == 3

    assert parsed(log.text) == made


@pytest.fixture
def tls(settings: Settings, tmp_path: Path) -> Iterator[Callable[[str], Log]]:
    """Starts a syslog server on TLS whose certificate is for that host, and which is called `localhost`."""
    served: list[Log] = []

    def start(host: str) -> Log:
        certificate = self_signed(tmp_path, host)
        served.append(Log(certificate))
        settings.FERMATA_AUDIT_ANCHOR_SYSLOG = f"tls://localhost:{served[-1].port}"
        settings.FERMATA_AUDIT_ANCHOR_SYSLOG_CA = str(certificate)
        return served[-1]

    yield start
    for log in served:
        log.close()


def test_over_tls_every_line_is_counted_and_an_outage_leaves_nothing_out(
    write: Callable[..., str], tls: Callable[[str], Log]
) -> None:
    log = tls("localhost")
    sealed(write, 2)
    assert anchor_due() == 2
    log.close()
    sealed(write)
    assert anchor_due() == 0
    log.open()

    made = sealed(write)
    assert anchor_due() == 2

    assert parsed(log.text) == made
    counted = re.findall(r"(\d+) (<109>.*?digest=[0-9a-f]{64})", log.text)
    assert "".join(f"{count} {line}" for count, line in counted) == log.text
    assert all(int(count) == len(line) for count, line in counted)


@pytest.mark.parametrize(
    ("host", "knows_root", "why"),
    [
        ("elsewhere.example", True, "not valid for 'localhost'"),
        ("localhost", False, "self-signed certificate"),
    ],
)
def test_over_tls_only_the_server_itself_gets_anything(
    write: Callable[..., str], tls: Callable[[str], Log], settings: Settings, caplog: pytest.LogCaptureFixture,
    host: str, knows_root: bool, why: str,
) -> None:  # fmt: skip
    log = tls(host)
    if not knows_root:
        settings.FERMATA_AUDIT_ANCHOR_SYSLOG_CA = ""  # the system's
    sealed(write)

    assert anchor_due() == 0

    assert why in caplog.text
    assert log.text == ""
    assert AuditAnchored.objects.get().no == 0


def test_a_connection_that_breaks_is_no_delivery(write: Callable[..., str], settings: Settings) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def reset() -> None:
            connection, _ = listener.accept()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()  # with a reset: what was sent is lost

        settings.FERMATA_AUDIT_ANCHOR_SYSLOG = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        sealed(write)
        threading.Thread(target=reset, daemon=True).start()

        assert anchor_due() == 0
    assert AuditAnchored.objects.filter(no__gt=0).count() == 0


def test_a_webhook_gets_seals_that_prove_themselves(write: Callable[..., str], hook: Hook) -> None:
    made = sealed(write, 2)

    anchor()

    assert hook.paths == ["/seals?token=t0ken"]
    assert [(seal["no"], seal["digest"]) for seal in hook.taken[0]] == made
    assert set(hook.taken[0][0]) == {"no", "digest", "prev", "first", "last", "root", "at", "key", "signature"}
    assert hook.taken[0][1]["prev"] == made[0][1]


@pytest.mark.parametrize("status", [500, 503, 302, 404])
def test_after_an_outage_of_the_webhook_nothing_is_left_out(
    write: Callable[..., str], hook: Hook, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    sealed(write)
    anchor_due()
    hook.status = status
    sealed(write, 2)
    assert anchor_due() == 0
    assert f"answered {status}" in caplog.text
    assert "t0ken" not in caplog.text

    hook.status = 200
    assert anchor_due() == 2

    assert hook.numbers() == [1, 2, 3]
    assert "/elsewhere" not in hook.paths


def test_who_dies_before_the_mark_is_kept_sends_again(write: Callable[..., str], hook: Hook) -> None:
    sealed(write, 2)
    with patch.object(anchoring, "MARK", "SELECT 1 / 0 WHERE (%s, %s, %s) IS NOT NULL"), pytest.raises(DataError):
        anchor_due()

    assert anchor_due() == 2

    assert hook.numbers() == [1, 2, 1, 2]


def test_one_process_sends_at_a_time_and_a_dead_ones_claim_runs_out(write: Callable[..., str], hook: Hook) -> None:
    sealed(write)
    AuditAnchored.objects.create(kind="webhook", claimed_until=database_now() + timedelta(seconds=60))
    assert anchor_due() == 0
    AuditAnchored.objects.update(claimed_until=database_now())
    assert anchor_due() == 1
    assert hook.numbers() == [1]


def test_no_transaction_is_open_while_a_receiver_is_waited_for(write: Callable[..., str], hook: Hook) -> None:
    # windmill#8952
    sealed(write)
    with patch.object(Webhook, "send", side_effect=lambda _: open_then.append(connection.in_atomic_block)):
        open_then: list[bool] = []
        assert anchor_due() == 1
    assert open_then == [False]


@pytest.mark.parametrize(
    ("setting", "scheme", "says"),
    [
        ("FERMATA_AUDIT_ANCHOR_SYSLOG", "tcp", b""),
        ("FERMATA_AUDIT_ANCHOR_SYSLOG", "tls", b"\x16\x03\x03\x40\x00"),  # the beginning of a long handshake
        ("FERMATA_AUDIT_ANCHOR_WEBHOOK", "http", b""),
    ],
)
def test_a_receiver_that_never_stops_talking_holds_nobody(
    write: Callable[..., str], settings: Settings, setting: str, scheme: str, says: bytes
) -> None:
    def talk(listener: socket.socket) -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            connection.sendall(says)
            while True:
                connection.sendall(b"H")
                time.sleep(0.02)

    with closing(socket.create_server(("127.0.0.1", 0))) as talkative, patch.object(receivers, "TIMEOUT", 0.2):
        thread = threading.Thread(target=talk, args=(talkative,), daemon=True)
        thread.start()
        setattr(settings, setting, f"{scheme}://127.0.0.1:{talkative.getsockname()[1]}")
        sealed(write)
        assert anchor_due() == 0
        thread.join(10)
    assert AuditAnchored.objects.get().no == 0


def test_a_long_backlog_goes_in_batches(write: Callable[..., str], hook: Hook) -> None:
    sealed(write, 5)
    with patch.object(anchoring, "BATCH", 2):
        assert anchor_due() == 5
    assert [len(batch) for batch in hook.taken] == [2, 2, 1]


def test_one_receiver_that_is_away_does_not_keep_seals_from_the_other(
    write: Callable[..., str], hook: Hook, log: Log
) -> None:
    made = sealed(write, 2)
    hook.status = 500

    assert anchor_due() == 2

    assert parsed(log.text) == made
    assert hook.numbers() == []


def test_a_silent_receiver_delays_no_seal(write: Callable[..., str], settings: Settings) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent, patch.object(receivers, "TIMEOUT", 0.2):
        settings.FERMATA_AUDIT_ANCHOR_WEBHOOK = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert sealed(write, 2)
        assert anchor_due() == 0
        assert len(sealed(write)) == 3


def test_a_seal_that_this_deployment_did_not_sign_is_not_passed_on(write: Callable[..., str], hook: Hook) -> None:
    sealed(write, 2)
    with unguarded() as run:
        run("UPDATE approvals_auditseal SET signature = %s WHERE no = 2", bytes(64))

    with pytest.raises(TrailRewritten):
        anchor_due()
    assert hook.numbers() == []


def test_a_trail_made_anew_does_not_fit_the_log_that_was_kept_elsewhere(
    write: Callable[..., str], log: Log, tmp_path: Path, settings: Settings
) -> None:
    settings.FERMATA_AUDIT_ANCHOR = ""
    sealed(write, 2)
    anchor_due()
    kept = tmp_path / "messages"
    kept.write_text("Nov 29 noise\n" + log.text.replace("<109>", "\n<109>") + "\nmore noise\n")
    call_command("verify_audit", copies=[kept])

    with unguarded() as run:  # somebody with the database and the key begins again, without the first event
        run("UPDATE approvals_auditleaf SET no = NULL")
        run("DELETE FROM approvals_auditseal")
        run("DELETE FROM approvals_auditleaf WHERE event_id = (SELECT min(id) FROM approvals_auditevent)")
        run("DELETE FROM approvals_auditbody WHERE event_id = (SELECT min(id) FROM approvals_auditevent)")
        run("DELETE FROM approvals_auditevent WHERE id = (SELECT min(id) FROM approvals_auditevent)")
    seal_due()

    call_command("verify_audit")  # without an anchor it cannot be seen
    with pytest.raises(CommandError, match="not sound"):
        call_command("verify_audit", copies=[kept])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FERMATA_AUDIT_ANCHOR_SYSLOG", "syslog.example"),
        ("FERMATA_AUDIT_ANCHOR_SYSLOG", "tcp://syslog.example"),
        ("FERMATA_AUDIT_ANCHOR_SYSLOG", "udp://syslog.example:99999"),
        ("FERMATA_AUDIT_ANCHOR_SYSLOG", "tls://syslog.example"),
        ("FERMATA_AUDIT_ANCHOR_WEBHOOK", "http://hooks.example/s3cret"),
        ("FERMATA_AUDIT_ANCHOR_WEBHOOK", "https://s3cret@hooks.example/"),
        ("FERMATA_AUDIT_ANCHOR_WEBHOOK", "https://hooks.example/s3cret\r\nX: y"),
        ("FERMATA_AUDIT_ANCHOR_WEBHOOK", "ftp://hooks.example/s3cret"),
    ],
)
def test_a_wrong_setting_stops_the_start_and_is_named(name: str, value: str) -> None:
    started = subprocess.run(
        [sys.executable, "-c", "import fermata.settings"],
        cwd=ROOT, env=environment(**{name: value}), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert started.returncode == 1
    last = started.stderr.strip().splitlines()[-1]
    assert name in last
    assert "s3cret" not in last


@pytest.mark.parametrize(
    ("value", "ca", "wrong"),
    [
        ("tls://log.example:6514", "/nowhere/roots.pem", "no file with certificates"),
        ("tls://log.example:6514", __file__, "no file with certificates"),
        ("tcp://log.example:601", __file__, "for tls://host:port only"),
        ("/dev/log", __file__, "for tls://host:port only"),
    ],
)
def test_wrong_roots_of_a_syslog_server_are_named(value: str, ca: str, wrong: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"NAME_CA .*{wrong}"):
        Syslog.from_setting("NAME", value, ca=ca)


@pytest.mark.parametrize("value", ["/dev/log", "udp://log.example:514", "tcp://[::1]:601", "tls://log.example:6514"])
def test_addresses_of_syslog_servers(value: str) -> None:
    assert Syslog.from_setting("NAME", value)


def test_a_receiver_that_is_not_there_is_told_by_its_host() -> None:
    with pytest.raises(NotTaken, match=r"127\.0\.0\.1"):
        Webhook.from_setting("NAME", "http://127.0.0.1:1/").send([])
