"""The Fermata project: settings, URLs, Celery, and the errors it shows the world."""

from fermata.celery import app as celery_app

__all__ = ["celery_app"]
