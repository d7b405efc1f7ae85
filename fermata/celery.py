"""The Celery application. Messages are doorbells: the database is the truth."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fermata.settings")

app = Celery("fermata")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
