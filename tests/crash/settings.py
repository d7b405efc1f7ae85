"""Fermata's settings with the crash tests' workflows, for Celery workers whose broker is impatient."""

import os

from fermata.settings import *  # noqa: F403
from fermata.settings import CELERY_BROKER_TRANSPORT_OPTIONS, CELERY_IMPORTS

CELERY_IMPORTS = [*CELERY_IMPORTS, "tests.crash.flows"]
if "VISIBILITY_TIMEOUT" in os.environ:
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        **CELERY_BROKER_TRANSPORT_OPTIONS,
        "visibility_timeout": int(os.environ["VISIBILITY_TIMEOUT"]),
        "unacked_restore_interval": 1,  # seconds between two looks at what became visible again: kombu takes 100
        "unacked_restore_throttle": 1,
    }
