"""Whether this worker is on its way out. The flag is shared memory: the main process sets it, its children read it."""

import mmap
from typing import Any

from celery.signals import worker_shutting_down

_flag = mmap.mmap(-1, 1)


def is_draining() -> bool:
    return _flag[0] == 1


@worker_shutting_down.connect
def _drain(**kwargs: Any) -> None:
    _flag[0] = 1
