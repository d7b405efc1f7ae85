"""One process under supervision."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from fermata.embedded.program import Program
from fermata.launcher.logs import Log

PR_SET_PDEATHSIG = 1
LONGEST_PAUSE = 30.0  # seconds between two starts of a program that keeps ending
SETTLED = 30.0  # seconds after which a program counts as running well

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class Child:
    """A program, and its process while it has one.

    For one thread only: the kernel takes the end of the thread that started a process for its parent's.
    """

    def __init__(self, program: Program, log: Log) -> None:
        self.program = program
        self.log = log
        self.failures = 0
        """Starts in a row that did not last."""
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._next_start = 0.0
        self._socket: tuple[int, int] | None = None
        self._asked = False

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def due(self) -> bool:
        return not self.running and time.monotonic() >= self._next_start

    def start(self) -> None:
        program = self.program
        if program.prepare:
            program.prepare()
        account = program.account
        with self.log.open() as output:
            self._process = subprocess.Popen(
                program.argv,
                env=program.env,
                cwd=program.folder,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=dies_with_parent(program.stop),  # noqa: PLW1509 (there are no threads)
            )
        self._started = time.monotonic()
        self._socket = None
        self._asked = False

    def ended(self) -> int | None:
        """Its exit code, if it has ended since the last call; what is left of its group is ended too."""
        process = self._process
        if process is None or os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        # Not waited for yet: as long as it is a zombie nobody else can be given its number, or its group's.
        self._signal_group(signal.SIGKILL)
        code = process.wait()
        self._process = None
        if time.monotonic() - self._started >= SETTLED:
            self.failures = 0
        self.put_off()
        return code

    def put_off(self) -> None:
        """After a start that did not last: twice as long a pause as the last time."""
        self._next_start = time.monotonic() + min(0.5 * 2**self.failures, LONGEST_PAUSE)
        self.failures += 1

    def ask_to_stop(self) -> None:
        """Ask the process itself; what it started is its own to end."""
        self._asked = True
        if self._process is not None:
            self._process.send_signal(self.program.stop)

    def kill(self) -> None:
        self._signal_group(signal.SIGKILL)

    def has_lost_its_socket(self) -> bool:
        """Whether the socket that it listened on is gone, or is another process's now (once)."""
        if self.program.socket is None or not self.running or self._asked:
            return False
        try:
            found = self.program.socket.stat()
        except FileNotFoundError:
            return self._socket is not None
        if time.time() - found.st_ctime < 1:  # its permissions are set a moment after it appears
            return False
        now = (found.st_ino, found.st_ctime_ns)
        self._socket = self._socket or now
        return now != self._socket

    def _signal_group(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


def dies_with_parent(number: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: the kernel sends `number` to the new process when this one ends, however it ends."""
    parent = os.getpid()

    def before_exec() -> None:
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:  # it ended before the kernel was told
            os._exit(1)

    return before_exec
