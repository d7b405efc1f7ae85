"""What asks the launcher to end."""

import os
import signal
from types import FrameType


class StopRequests:
    """Signals, and the disappearance of make or of the terminal: make passes neither SIGHUP nor its own SIGKILL
    on, and a terminal that goes sends SIGHUP to make alone if make is all that runs in it."""

    def __init__(self) -> None:
        self.signals = 0
        self.last_signal: int | None = None
        self._make = os.getppid() if "MAKELEVEL" in os.environ else None
        self._terminal = False

    def listen(self) -> None:
        """From now on SIGINT, SIGTERM and SIGHUP are requests (SIGHUP is none under nohup)."""
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, self._on_signal)
            self._terminal = os.isatty(1)

    @property
    def any(self) -> bool:
        if self.signals:
            return True
        if self._make is not None and self._make != os.getppid():
            return True
        return self._terminal and not os.isatty(1)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1
        self.last_signal = number
