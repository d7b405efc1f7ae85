"""Fermata's settings, with the benchmark's workflows and a queue that no other worker listens to."""

from fermata.settings import *  # noqa: F403
from fermata.settings import INSTALLED_APPS, LOGGING

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks"]
CELERY_TASK_DEFAULT_QUEUE = "benchmark"
FERMATA_SLICE_SECONDS = 600.0
LOGGING["root"]["level"] = "WARNING"
