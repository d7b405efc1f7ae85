"""Who votes for whom, and until when. A GET changes nothing."""

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from approvals.errors import DelegationRefused
from approvals.forms.delegations import DelegationForm
from approvals.models import Delegation
from approvals.presentation.delegations import delegation_lines
from approvals.queries.rules import delegations_for, givers_for, stand_ins_for
from approvals.services.delegating import confirm_delegation, delegate, revoke_delegation
from runs.access import signed_in
from runs.principals import Person


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def delegations(request: HttpRequest, person: Person) -> HttpResponse:
    if request.method != "POST":
        return _page(request, person, _form(person))
    form = _form(person, request.POST)
    if not form.is_valid():
        return _page(request, person, form, status=400)
    try:
        delegate(**form.cleaned_data | {"giver": form.cleaned_data.get("giver") or person.user}, by=person.user)
    except DelegationRefused as error:
        return _page(request, person, form, refusal=error, status=403)
    return redirect("delegations")


@require_POST
@signed_in
def delegation_end(request: HttpRequest, person: Person, delegation_id: int) -> HttpResponse:
    given = _given(person, delegation_id)
    return _attempt(request, person, lambda: revoke_delegation(delegation_id=given.pk, by=person.user))


@require_POST
@signed_in
def delegation_confirm(request: HttpRequest, person: Person, delegation_id: int) -> HttpResponse:
    """Let it count for high risk too."""
    given = _given(person, delegation_id)
    return _attempt(request, person, lambda: confirm_delegation(delegation_id=given.pk, by=person.user))


def _attempt(request: HttpRequest, person: Person, service: Callable[[], object]) -> HttpResponse:
    try:
        service()
    except DelegationRefused as error:
        return _page(request, person, _form(person), refusal=error, status=403)
    return redirect("delegations")


def _form(person: Person, posted: QueryDict | None = None) -> DelegationForm:
    return DelegationForm(posted, givers=givers_for(person), takers=stand_ins_for(person))


def _page(
    request: HttpRequest,
    person: Person,
    form: DelegationForm,
    *,
    refusal: Exception | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "section": "delegations",
        "form": form,
        "lines": delegation_lines(delegations_for(person), person.user),
        "refusal": refusal,
    }
    return render(request, "delegations/list.html", context, status=status)


def _given(person: Person, delegation_id: int) -> Delegation:
    given = delegations_for(person).filter(pk=delegation_id).first()
    if given is None:
        raise Http404
    return given
