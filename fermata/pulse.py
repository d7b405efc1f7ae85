"""A worker's sign of life: a thread beside its pool, so that a worker full of long runs still counts as there."""

import logging
import threading
from typing import Any

from celery.signals import worker_ready, worker_shutdown
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection

from runs.services.beats import note_alive

log = logging.getLogger(__name__)

EVERY = 3.0
_stop = threading.Event()


def _beat() -> None:
    while True:
        try:
            note_alive(name="worker")
        except (OperationalError, InterfaceError) as error:
            connection.close()
            log.warning("no sign of life could be left: %s", error)
        if _stop.wait(EVERY):
            connection.close()
            return


@worker_ready.connect
def start(sender: Any, **kwargs: Any) -> None:
    """Only for workers that run runs: the sweeper's own worker proves nothing about them."""
    if settings.CELERY_TASK_DEFAULT_QUEUE in sender.app.amqp.queues.consume_from:
        _stop.clear()
        threading.Thread(target=_beat, name="pulse", daemon=True).start()


@worker_shutdown.connect
def stop(**kwargs: Any) -> None:
    _stop.set()
