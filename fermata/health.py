"""`/livez`: this process answers. `/readyz`: everything that Fermata needs answers, each part by its name."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from fermata.celery import app

ANSWER_WITHIN = 0.8  # seconds, for all parts together
SILENT_AFTER = {"worker": 15, "beat": 15}  # seconds
OK = "ok"


class Probe:
    """A question asked on a thread of its own, one at a time: a part that hangs holds up nothing but itself."""

    def __init__(self, ask: Callable[[], dict[str, str]]) -> None:
        self._ask = ask
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="readyz")
        self._lock = Lock()
        self._asked: Future[dict[str, str]] | None = None

    def start(self) -> Future[dict[str, str]]:
        """Ask, unless the last question is still without an answer; that one goes on."""
        with self._lock:
            if self._asked is None or self._asked.done():
                self._asked = self._thread.submit(self._ask)
            return self._asked


@require_safe
def livez(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    parts = readiness()
    return JsonResponse(parts, status=200 if set(parts.values()) == {OK} else 503)


def readiness() -> dict[str, str]:
    """`database`, `broker`, `worker`, `beat`: `ok`, or what is wrong. Answers within a second, whatever hangs."""
    parts = dict.fromkeys(("database", "broker", "worker", "beat"), f"no answer within {ANSWER_WITHIN:g} s")
    for question in wait([_database.start(), _broker.start()], timeout=ANSWER_WITHIN).done:
        parts |= question.result()
    return parts


def _ask_database() -> dict[str, str]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT name, extract(epoch FROM clock_timestamp() - at) FROM runs_service_beat")
            silent: dict[str, Any] = dict(cursor.fetchall())
    except Exception as error:  # noqa: BLE001  whatever it is, the database is not ready
        away = f"unreachable ({type(error).__name__})"
        return {"database": away, "worker": "unknown", "beat": "unknown"}
    finally:
        connection.close()
    return {"database": OK, **{name: _sign(silent.get(name), limit) for name, limit in SILENT_AFTER.items()}}


def _sign(silent: Any, limit: int) -> str:
    if silent is None:
        return "never seen"
    return OK if silent < limit else f"silent for {silent:.0f} s"


def _ask_broker() -> dict[str, str]:
    try:
        with app.connection_for_write() as broker:
            broker.connect()
    except Exception as error:  # noqa: BLE001  each transport raises its own
        return {"broker": f"unreachable ({type(error).__name__})"}
    return {"broker": OK}


_database = Probe(_ask_database)
_broker = Probe(_ask_broker)
