import base64
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pytest_django import Settings

from approvals.audit.keys import KeyProblem, public_bytes, public_key, signing_key, trusted_keys
from tests.support.processes import ROOT


@pytest.fixture
def key_file(settings: Settings, tmp_path: Path) -> Path:
    settings.FERMATA_AUDIT_KEY = ""
    settings.FERMATA_AUDIT_KEY_FILE = str(tmp_path / "home" / "audit-key")
    return tmp_path / "home" / "audit-key"


def test_the_first_use_makes_a_key_that_only_its_owner_reads(key_file: Path) -> None:
    first = public_bytes(signing_key())
    assert public_bytes(signing_key()) == first
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert list(key_file.parent.iterdir()) == [key_file]


def test_many_first_uses_make_one_key(key_file: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: public_bytes(signing_key()), range(8)))) == 1


def test_in_production_no_key_is_made(key_file: Path, settings: Settings) -> None:
    settings.PRODUCTION = True
    with pytest.raises(KeyProblem, match="FERMATA_AUDIT_KEY"):
        signing_key()
    assert not key_file.exists()


def test_looking_for_trusted_keys_makes_none(key_file: Path) -> None:
    assert trusted_keys() == frozenset()
    assert not key_file.exists()


def test_retired_keys_are_trusted(settings: Settings) -> None:
    own = public_bytes(signing_key())
    settings.FERMATA_AUDIT_RETIRED_KEYS = [base64.b64encode(b"r" * 32).decode()]
    assert trusted_keys() == {own, b"r" * 32}


@pytest.mark.parametrize("text", ["", "short", base64.b64encode(b"x" * 31).decode(), "not base64 at all!", "é"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(KeyProblem, match="base64"):
        public_key(text)


def test_production_does_not_start_without_a_key() -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FERMATA_AUDIT")}
    started = subprocess.run(
        [sys.executable, "-c", "import fermata.settings"],
        cwd=ROOT,
        env={**clean, "FERMATA_BASE_URL": "https://fermata.example", "FERMATA_SECRET_KEY": "secret"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "FERMATA_AUDIT_KEY or FERMATA_AUDIT_KEY_FILE must be set in production" in started.stderr
