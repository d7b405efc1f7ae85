"""Named points where a test may kill, stop or disconnect a worker. Inert unless `FERMATA_FAILPOINTS` is set.

`FERMATA_FAILPOINT=name:action[:nth]` strikes at the nth passage (the first, by default). Actions: `kill` (SIGKILL);
`stop` (SIGSTOP); `cut` (the engine's connection dies, so that the next statement never arrives); `lose` (the next
commit arrives and its answer does not).
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
    "finish.before",
    "finish.after",
    "release.before",
    "release.after",
)

passed: Counter[str] = Counter()  # by this process
struck: list[str] = []
_actions: dict[str, Callable[[], None]] = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
}


def register(action: str, strike: Callable[[], None]) -> None:
    """Add an action: the engine's connection knows how to break itself."""
    _actions[action] = strike


def failpoint(name: str) -> None:
    """Strike here if the environment says so."""
    if not settings.FERMATA_FAILPOINTS:
        return
    passed[name] += 1
    wanted, _, rest = os.environ.get("FERMATA_FAILPOINT", "").partition(":")
    if wanted != name:
        return
    action, _, nth = rest.partition(":")
    if passed[name] != int(nth or 1):
        return
    struck.append(name)
    _actions[action]()
