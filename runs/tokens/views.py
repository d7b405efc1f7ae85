"""A person's own tokens. A GET changes nothing; a token is made only with the password, and shown once."""

from datetime import timedelta

from django.contrib.auth import authenticate
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from runs.access import signed_in
from runs.models import PersonalToken
from runs.principals import Person
from runs.services.tokens import IssuedToken, TokenRefused, living_tokens, make_token, revoke_token
from runs.tokens.forms import TokenForm


@sensitive_post_parameters()
@sensitive_variables("issued")
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def tokens(request: HttpRequest, person: Person) -> HttpResponse:
    form = TokenForm(request.POST or None)
    issued = _made(request, person, form) if request.method == "POST" and form.is_valid() else None
    context = {
        "section": "delegations",
        "form": TokenForm() if issued else form,
        "issued": issued,
        "tokens": living_tokens(person.user),
    }
    return render(request, "tokens/list.html", context, status=400 if form.errors else 200)


@require_POST
@signed_in
def token_revoke(request: HttpRequest, person: Person, token_id: int) -> HttpResponse:
    token = PersonalToken.objects.filter(person=person.user, pk=token_id).first()
    if token is None:
        raise Http404
    revoke_token(token=token)
    return redirect("tokens")


def _made(request: HttpRequest, person: Person, form: TokenForm) -> IssuedToken | None:
    said = form.cleaned_data
    if authenticate(request, username=person.user.get_username(), password=said["password"]) != person.user:
        form.add_error("password", "That is not your password.")
        return None
    try:
        return make_token(
            person=person.user, name=said["name"], lasts=timedelta(days=said["days"]), may_vote=said["may_vote"]
        )
    except TokenRefused as refusal:
        form.add_error(None, str(refusal))
        return None
