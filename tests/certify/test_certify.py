"""`manage.py certify`, on a workflow that may die anywhere and on some that may not."""

from __future__ import annotations

import re
import subprocess
import sys

import psycopg
import pytest
from django.db import connection

from tests.support.processes import ROOT, environment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]


def certify(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "certify", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def databases() -> set[str]:
    with psycopg.connect(environment()["DATABASE_URL"]) as server:
        return {name for (name,) in server.execute("SELECT datname FROM pg_database").fetchall()}


def test_a_sound_workflow_passes_and_has_no_real_effect() -> None:
    done = certify("tests.certify.sound", "--input", '{"to": "ada"}')
    assert (done.returncode, done.stderr) == (0, "")
    heading, columns, *rows = done.stdout.splitlines()
    crashes = re.fullmatch(r"certify/sound: (\d+) crashes, passed", heading)
    assert crashes
    assert int(crashes[1]) > 40
    assert columns.split("  ")[1] == "phase"
    found = [re.split(r"\s{2,}", row.strip()) for row in rows]
    everywhere = "intent.after, call.before, call.after, outcome.before"
    assert found == [
        ["finish", "gate:mail", "is in doubt: a person is asked", everywhere],
        ["start", "charge", "is sent again under the same key", "call.after, outcome.before"],
    ]
    assert f"{connection.settings_dict['NAME']}_certify" not in databases()


def test_unsound_workflows_are_told_where_and_why() -> None:
    done = certify("tests.certify.unsound")
    assert done.returncode == 1
    assert done.stderr == "CommandError: Not certified: certify/unordered, certify/dated, certify/unfed.\n"
    unordered, rest = done.stdout.split("certify/dated: ")
    dated, unfed = rest.split("certify/unfed: ")
    assert "crashes, NOT PASSED" in unordered
    assert re.search(r"!! diverges: code diverged before step 'send\[\w+\]'", unordered)
    assert "!! diverges: code diverged at step 'send'" in dated
    assert "take times from run.now()" in dated
    assert unfed.startswith("0 crashes, NOT PASSED")
    assert "!! does not complete even undisturbed: TypeError" in unfed


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["tests.certify.nothing"], "No module named 'tests.certify.nothing'"),
        (["tests.certify.test_certify"], "tests.certify.test_certify has no workflow with a phase 'start'"),
        (["tests.certify.sound", "--input", "{"], "Expecting property name"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], why: str) -> None:
    done = certify(*arguments)
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
