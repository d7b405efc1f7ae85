"""An end that the other side does not decide: a socket's time-out starts anew with each byte, this one does not."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer


@contextmanager
def hanging_up(hang_up: Callable[[], None], *, after: float) -> Iterator[None]:
    """What is still under way after so many seconds is ended by `hang_up`, from another thread."""
    timer = Timer(after, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def shut(remote: socket.socket) -> None:
    """End whatever waits for this socket, of TLS too."""
    with suppress(OSError):  # it is closed already
        socket.socket.shutdown(remote, socket.SHUT_RDWR)
