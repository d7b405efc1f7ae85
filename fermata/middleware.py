"""Two promises about every answer: nothing private stays in a cache, and a database outage is not a traceback."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import add_never_cache_headers

from fermata.handlers import DATABASE_AWAY, unavailable


class NoStoreMiddleware:
    """`Cache-Control: no-store` on everything that a view made. Static files are answered before this."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not response.has_header("Cache-Control"):
            add_never_cache_headers(response)
        return response


class UnavailableMiddleware:
    """A database that is away or overloaded is a 503 that says so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return unavailable(request) if isinstance(exception, DATABASE_AWAY) else None
