import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from approvals.models import AuditBody, AuditEvent
from tests.approvals.audit.conftest import KEY, unguarded
from tests.support.processes import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


def command(name: str, *args: object, **options: Any) -> str:
    out = io.StringIO()
    call_command(name, *map(str, args), stdout=out, stderr=out, **options)
    return out.getvalue()


@pytest.fixture
def exported(write: Callable[..., str], tmp_path: Path) -> Path:
    write(3)
    path = tmp_path / "export.jsonl"
    command("export_audit", "--format", "jsonl", "--output", path)
    return path


def test_verify_audit_checks_the_database(write: Callable[..., str]) -> None:
    write(3)
    assert "The audit trail is sound: 3 events, 0 seals, 3 not sealed yet, 0 erased." in command("verify_audit")


def test_verify_audit_names_what_is_wrong_and_fails(write: Callable[..., str]) -> None:
    chain = write(3)
    with unguarded() as change:
        change("UPDATE approvals_auditevent SET actor = 'worker' WHERE n = 2")
    out = io.StringIO()
    with pytest.raises(CommandError, match="not sound: 1 findings"):
        call_command("verify_audit", stdout=out, stderr=out)
    assert f"changed: {chain} 2" in out.getvalue()


def run_verify(path: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    """As a user does, in a process whose database does not answer."""
    return subprocess.run(
        [sys.executable, "manage.py", "verify_audit", str(path), *args],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "FERMATA_AUDIT_KEY": KEY},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_verify_audit_checks_a_file_without_a_database(exported: Path) -> None:
    sound = run_verify(exported)
    assert (sound.returncode, sound.stderr) == (0, "")
    assert "sound: 4 events" in sound.stdout
    exported.write_text(exported.read_text().replace('"number":1', '"number":2'))
    broken = run_verify(exported)
    assert broken.returncode == 1
    assert "the body is not the one that was committed to" in broken.stderr


def test_verify_audit_says_when_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        command("verify_audit", tmp_path / "none")


def test_verify_audit_trusts_a_key_that_it_is_told(exported: Path, settings: Any, tmp_path: Path) -> None:
    own = next(line for line in command("verify_audit").splitlines() if line.startswith("Trusted key: "))
    settings.FERMATA_AUDIT_KEY = ""
    settings.FERMATA_AUDIT_KEY_FILE = str(tmp_path / "none")
    with pytest.raises(CommandError, match="not sound"):
        command("verify_audit", exported)
    assert "sound" in command("verify_audit", exported, "--public-key", own.removeprefix("Trusted key: "))
    with pytest.raises(CommandError, match="base64"):
        command("verify_audit", exported, "--public-key", "nonsense")


def test_export_audit_filters(write: Callable[..., str], person: Callable[..., User], tmp_path: Path) -> None:
    ada = person("ada")
    chain = write(actor=f"person:{ada.pk}")
    write()
    path = tmp_path / "export.jsonl"
    told = command("export_audit", "--output", path, "--person", "ada", "--since", "2020-01-01", "--team", "Default")
    assert told == f"1 events written to {path}.\n"
    assert chain in path.read_text()
    assert "The audit trail is sound" in command("verify_audit", path)


@pytest.mark.parametrize(
    "wrong", [["--person", "nobody"], ["--team", "none"], ["--since", "soon"], ["--run", "1"], ["--type", "no.such"]]
)
def test_export_audit_refuses_what_it_does_not_know(tmp_path: Path, wrong: list[str]) -> None:
    with pytest.raises(CommandError):
        command("export_audit", "--output", tmp_path / "export", *wrong)
    assert list(tmp_path.iterdir()) == []
    assert not AuditEvent.objects.exists()


def test_export_audit_leaves_no_half_file(write: Callable[..., str], tmp_path: Path, settings: Any) -> None:
    write()
    settings.FERMATA_AUDIT_KEY = "nonsense"
    path = tmp_path / "export.jsonl"
    path.write_text("the one before")
    with pytest.raises(CommandError, match="FERMATA_AUDIT_KEY"):
        command("export_audit", "--output", path)
    assert [each.name for each in tmp_path.iterdir()] == ["export.jsonl"]
    assert path.read_text() == "the one before"


def test_erase_from_audit(write: Callable[..., str], person: Callable[..., User]) -> None:
    write(2, chain=f"approval:{uuid4()}", person_id=person("ada").pk)
    assert command("erase_from_audit", "ada", "--yes").startswith("2 bodies erased")
    assert AuditBody.objects.count() == 1
    with pytest.raises(CommandError, match="no person"):
        command("erase_from_audit", "bob", "--yes")
