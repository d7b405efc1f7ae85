"""What the web process loads once is not looked through by the garbage collector."""

import subprocess
import sys

from tests.support.processes import environment

COUNT = """
import gc
import fermata.asgi
kept = gc.get_freeze_count()
before = len(gc.get_objects())
from django.urls import reverse
reverse("inbox")
print(kept, before, len(gc.get_objects()))
"""


def test_what_answers_requests_is_loaded_and_kept_before_the_first_one() -> None:
    command = [sys.executable, "-c", COUNT]
    said = subprocess.run(command, env=environment(), check=True, capture_output=True, text=True).stdout
    kept, before, after = map(int, said.split())

    assert kept > 50_000
    assert before < 5_000
    assert after < 20_000
