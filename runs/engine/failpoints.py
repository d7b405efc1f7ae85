"""Named points where a test may kill, stop or disconnect a worker. Inert unless `FERMATA_FAILPOINTS` is set.

`FERMATA_FAILPOINT=name:action[:nth]`, where action is `kill` (SIGKILL), `stop` (SIGSTOP) or `cut` (the engine's
connection is closed under it) and nth is the passage at which it strikes (1 by default).
"""

import os
import signal
from collections import Counter
from collections.abc import Callable

from django.conf import settings

NAMES = (
    "claim.before",
    "claim.after",
    "load.after",
    "intent.before",
    "intent.after",
    "call.before",
    "call.after",
    "outcome.before",
    "outcome.after",
    "checkpoint.before",
    "checkpoint.after",
    "gate.before",
    "gate.after",
    "deliver.before",
    "deliver.after",
    "finish.before",
    "finish.after",
    "release.before",
    "release.after",
)

_passed: Counter[str] = Counter()
cut: Callable[[], None] = lambda: None  # noqa: E731 - the engine's connection puts its own here


def failpoint(name: str) -> None:
    """Strike here if the environment says so."""
    if not settings.FERMATA_FAILPOINTS:
        return
    wanted, _, rest = os.environ.get("FERMATA_FAILPOINT", "").partition(":")
    if wanted != name:
        return
    action, _, nth = rest.partition(":")
    _passed[name] += 1
    if _passed[name] != int(nth or 1):
        return
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif action == "cut":
        cut()
