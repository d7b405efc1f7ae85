"""What Django shows when no view answers: a page, or a problem under `/api/`."""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from fermata.problems import RETRY_AFTER, UNAVAILABLE, problem_response

DATABASE_AWAY = (OperationalError, InterfaceError)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 400, "bad_request", "The request cannot be read.")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 403, "forbidden", "You may not do this.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _answer(request, 404, "not_found", "There is nothing here, or nothing that you may see.")


def server_error(request: HttpRequest) -> HttpResponse:
    if isinstance(sys.exc_info()[1], DATABASE_AWAY):
        return unavailable(request)
    return _answer(request, 500, "internal_error", "Something went wrong on our side; it has been logged.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _answer(
        request, 403, "csrf", "The form is too old, or did not come from here. Reload the page and try again."
    )


def unavailable(request: HttpRequest) -> HttpResponse:
    response = _answer(request, 503, "unavailable", UNAVAILABLE)
    response["Retry-After"] = str(RETRY_AFTER)
    return response


def _answer(request: HttpRequest, status: int, code: str, detail: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return problem_response(status, code=code, detail=detail)
    # Without the request: its context would ask the database who is signed in.
    return HttpResponse(render_to_string(f"{status}.html", {"detail": detail}), status=status)
