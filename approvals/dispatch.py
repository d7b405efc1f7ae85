"""The only place that names this app's Celery tasks. A message that is lost only makes something come later."""

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError as BrokerError

from runs.dispatch import breaker

log = logging.getLogger(__name__)


def tighten(team_id: int) -> None:
    """Once the current transaction has committed: let new policies apply to what is open."""
    transaction.on_commit(lambda: _send("approvals.tasks.tighten", team_id), robust=True)


def _send(name: str, *args: int) -> None:
    if breaker.is_open():
        return
    try:
        current_app.signature(name, args=args).apply_async(retry=False)
    except (BrokerError, OSError) as error:
        breaker.trip()
        log.warning("the broker did not take %s: %s", name, error)
