"""The door of every page: somebody signed in, as a principal."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django_htmx.http import HttpResponseClientRedirect

from runs.principals import Person

P = ParamSpec("P")
Page = Callable[Concatenate[HttpRequest, Person, P], HttpResponseBase]


def signed_in(view: Page[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Call `view` with the person; anybody else is sent to sign in, and comes back to the page that they were on."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if isinstance(request.user, User):
            return view(request, Person(request.user), *args, **kwargs)
        asked_by_htmx: Any = getattr(request, "htmx", None)
        if asked_by_htmx:
            back = asked_by_htmx.current_url_abs_path or "/"
            return HttpResponseClientRedirect(redirect_to_login(back).url)
        return redirect_to_login(request.get_full_path() if request.method in {"GET", "HEAD"} else "/")

    return guarded


def posted(request: HttpRequest) -> QueryDict | None:
    """What a page's form is bound to: the body of a POST, and nothing while the page is only looked at."""
    return request.POST if request.method == "POST" else None
