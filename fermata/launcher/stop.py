"""`make stop`: end a running instance, and what a kill has left of one."""

import os
import signal
import time
from contextlib import suppress

from fermata.embedded.instance import Instance
from fermata.launcher.errors import LauncherError
from fermata.launcher.household import end_leftovers
from fermata.launcher.lock import Locked, locked
from fermata.launcher.terminal import say

PATIENCE = 40.0  # seconds: more than a supervisor takes for its own stop


def stop(instance: Instance) -> None:
    """Raises LauncherError if something still runs after 40 seconds."""
    if not instance.home.exists():
        say("Nothing was running.")
        return
    deadline = time.monotonic() + PATIENCE
    asked: int | None = None
    while True:
        try:
            with locked(instance.lock):
                count = end_leftovers(instance)
            break
        except Locked as taken:
            if time.monotonic() > deadline:
                raise LauncherError(f"Fermata in {instance.home} does not stop.") from None
            if taken.holder and taken.holder.pid != asked:
                asked = taken.holder.pid
                with suppress(ProcessLookupError):
                    os.kill(asked, signal.SIGTERM)
            time.sleep(0.1)
    if asked or count:
        say("Fermata has stopped.")
    else:
        say("Nothing was running.")
