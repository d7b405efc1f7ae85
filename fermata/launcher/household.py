"""All the processes of one instance: started, started again when they end, and stopped together."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from fermata.embedded.errors import EmbeddedError
from fermata.embedded.instance import Instance
from fermata.embedded.leftovers import end, marked
from fermata.embedded.postgres import end_leftover_postgres
from fermata.embedded.program import Program, Server
from fermata.embedded.valkey import end_leftover_valkey
from fermata.launcher.children import Child, dies_with_parent
from fermata.launcher.errors import LauncherError, Stopped
from fermata.launcher.logs import Log
from fermata.launcher.requests import StopRequests
from fermata.launcher.terminal import say

TICK = 0.1  # seconds
PROGRAMS_GRACE = 6.0  # seconds to end in good order; a run that is cut off goes on from its last checkpoint
SERVERS_GRACE = 20.0
SERVER_START = 120.0  # seconds, with the recovery after a crash


def end_leftovers(instance: Instance) -> int:
    """End what a killed supervisor left running, and return how many there were. Call it under the lock."""
    programs = end(lambda: marked(instance.home), signal.SIGTERM, grace=3)
    return programs + end_leftover_postgres(instance) + end_leftover_valkey(instance)


class Household:
    """A context: on leaving it, whatever the reason, everything that it started is stopped.

    One thread does all: whoever waits calls `tick` and is told by Stopped when it is time to end.
    """

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._servers: list[Child] = []
        self._programs: list[Child] = []
        self._requests = StopRequests()

    def __enter__(self) -> Self:
        self._requests.listen()
        self._instance.logs.mkdir(mode=0o700, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _stop(self._programs, grace=PROGRAMS_GRACE, hurry=lambda: self._requests.signals > 1)
        _stop(self._servers, grace=SERVERS_GRACE, hurry=lambda: False)

    def start_server(self, server: Server) -> None:
        """Start it and wait until it answers. Raises LauncherError if it does not."""
        child = self._child(server.program)
        self._servers.append(child)
        child.start()
        deadline = time.monotonic() + SERVER_START
        while not server.ready():
            self.tick()
            if child.failures or time.monotonic() > deadline:
                raise LauncherError(f"{child.program.name} does not start; its log is {child.log.path}.")
        if server.after_start:
            server.after_start()

    def start(self, programs: Iterable[Program]) -> None:
        for program in programs:
            child = self._child(program)
            self._programs.append(child)
            child.start()

    def tick(self) -> None:
        """Look after everything once, then pause for a moment. Raises Stopped when asked to end."""
        if self._requests.any:
            raise Stopped
        for child in (*self._servers, *self._programs):
            self._look_after(child)
        time.sleep(TICK)

    def run(self, argv: Sequence[str], env: Mapping[str, str]) -> int:
        """Run a command to its end at this terminal, and return its exit code. Stopped ends it too."""
        process = subprocess.Popen(
            argv,
            env=env,
            preexec_fn=dies_with_parent(signal.SIGTERM),  # noqa: PLW1509 (there are no threads)
        )
        try:
            while process.poll() is None:
                self.tick()
            return process.returncode
        finally:
            # Ctrl-C has reached it too: it is in this terminal's foreground. Any other request came to us alone.
            if process.poll() is None and self._requests.last_signal != signal.SIGINT:
                process.terminate()
            deadline = time.monotonic() + PROGRAMS_GRACE
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(TICK)
            process.kill()
            process.wait()

    def _look_after(self, child: Child) -> None:
        name = child.program.name
        child.log.show_new()
        if (code := child.ended()) is not None:
            child.log.show_new()
            say(f"{name} ended by itself ({_how(code)}): {self._last_words(child)}")
        elif child.has_lost_its_socket():
            say(f"{name} has lost its socket {child.program.socket}; starting it again")
            child.ask_to_stop()
        elif child.due:
            try:
                child.start()
            except (OSError, EmbeddedError) as error:
                say(f"{name} does not start: {error}")
                child.put_off()

    def _last_words(self, child: Child) -> str:
        if words := child.log.last_words():
            return words
        free = shutil.disk_usage(self._instance.home).free // 1024**2
        return f"it left no message; {free} MB are free on its disk"

    def _child(self, program: Program) -> Child:
        return Child(program, Log(self._instance.logs / f"{program.name}.log", echo=program.echo))


def _stop(children: Sequence[Child], *, grace: float, hurry: Callable[[], bool]) -> None:
    """Ask all to stop at once, and kill those that have not after `grace` seconds, or if `hurry`."""
    for child in children:
        child.ask_to_stop()
    deadline = time.monotonic() + grace
    while any(child.running for child in children):
        if time.monotonic() > deadline or hurry():
            for child in children:
                child.kill()
        time.sleep(TICK / 2)
        for child in children:
            child.ended()
            child.log.show_new()


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
