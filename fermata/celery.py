"""The Celery application. Messages are doorbells: the database is the truth."""

import os
from typing import Any

from celery import Celery
from celery.signals import task_prerun
from django.db import close_old_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fermata.settings")

app = Celery("fermata")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@task_prerun.connect
def forget_broken_connections(**_: Any) -> None:
    """Django's connection outlives a task (`DB_REUSE_MAX`), and may not outlive the server that it leads to: as before
    a request, a broken one is closed, and the others are looked at before they are used."""
    close_old_connections()
