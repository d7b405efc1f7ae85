"""What uvicorn runs. The few paths where somebody waits are raw ASGI and cost no thread; the rest is Django's WSGI
handler on a bounded pool of threads."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fermata.settings")
os.environ["FERMATA_PROCESS"] = "web"  # before the settings are read: they give the web process a connection pool

from a2wsgi import WSGIMiddleware
from django.conf import settings
from django.core.wsgi import get_wsgi_application

django: Any = get_wsgi_application()

from fermata.live.router import Router  # noqa: E402  it needs the models, which that call made ready
from fermata.loaded import keep_what_is_loaded  # noqa: E402

threads: Any = WSGIMiddleware(django, workers=settings.FERMATA_WEB_THREADS)
aside: Any = WSGIMiddleware(django, workers=1)  # for health: it answers also when every other thread is stuck
application = Router(threads, aside)
keep_what_is_loaded()
