"""The launcher with Fermata's own programs; the other tests use stand-ins."""

import subprocess
import sys

import pytest

from fermata.embedded.instance import CHECKOUT, Instance
from tests.launcher.running import Start, environment, processes


@pytest.mark.timeout(300)
def test_fermata_starts_survives_a_kill_and_stops(fresh: Instance, start: Start) -> None:
    first = start(fresh, whole=True).ready(120)
    credentials = fresh.home / "demo-credentials"
    assert credentials.stat().st_mode & 0o777 == 0o600
    assert manage(fresh, "shell", "-c", "from runs.models import Run; print(Run.objects.count())") == "2"
    first.kill()

    second = start(fresh, whole=True, PORT=str(first.port)).ready(120)
    assert manage(fresh, "shell", "-c", "from runs.models import Run; print(Run.objects.count())") == "2"
    for secret in credentials.read_text().split():
        assert len(secret) < 16 or secret not in second.output, "passwords are shown once"
    second.stop()
    assert processes(fresh) == []


def manage(instance: Instance, *arguments: str) -> str:
    """As a user calls it, with the same FERMATA_HOME."""
    argv = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(argv, cwd=CHECKOUT, env=environment(instance), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]
