"""What the settings are in production, where the environment says nothing about it, and what they refuse."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.processes import ROOT, environment

PRODUCTION = {
    "FERMATA_BASE_URL": "https://fermata.example",
    "FERMATA_SECRET_KEY": "x" * 50,
    "CELERY_BROKER_URL": "redis://127.0.0.1:6379/9",
}


def read(name: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """A setting's value, as a process that starts with `extra` in its environment has it."""
    code = f"from django.conf import settings; print(settings.{name})"
    inherited = {key: value for key, value in environment().items() if key not in PRODUCTION}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**inherited, "FERMATA_AUDIT_KEY": os.environ["FERMATA_AUDIT_KEY"], **PRODUCTION, **extra},
        capture_output=True,
        text=True,
        check=False,
    )


def test_basic_votes_are_off_in_production() -> None:
    assert read("FERMATA_BASIC_VOTES").stdout == "False\n"
    assert read("FERMATA_BASIC_VOTES", FERMATA_BASE_URL="http://127.0.0.1:8000").stdout == "True\n"


def test_webhooks_reach_this_machine_only_while_one_develops() -> None:
    assert read("FERMATA_WEBHOOK_NETWORKS").stdout == "()\n"
    local = read("FERMATA_WEBHOOK_NETWORKS", FERMATA_BASE_URL="http://127.0.0.1:8000").stdout
    assert local == "(IPv4Network('127.0.0.0/8'), IPv6Network('::1/128'))\n"


def test_a_network_that_is_none_is_named() -> None:
    refused = read("FERMATA_WEBHOOK_NETWORKS", FERMATA_WEBHOOK_NETWORKS="10.0.0.1/8")
    assert refused.returncode == 1
    assert "FERMATA_WEBHOOK_NETWORKS: 10.0.0.1/8 has host bits set" in refused.stderr
