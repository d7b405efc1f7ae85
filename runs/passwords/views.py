"""Setting a password: one's own with the old one, or by a link. A GET changes nothing but the visitor's own session."""

from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from runs.access import posted, signed_in
from runs.passwords.forms import ChangePasswordForm, NewPasswordForm
from runs.principals import Person
from runs.services.passwords import LinkRefused, PasswordRefused, change_password, digest_of, holder_of, use_link

LINK = "reset_link"  # of the session: the digest of the link that it came by


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def own_password(request: HttpRequest, person: Person) -> HttpResponse:
    """One's own. It ends every other session of the person's."""
    form = ChangePasswordForm(posted(request))
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        if authenticate(request, username=person.user.get_username(), password=said["current"]) != person.user:
            form.add_error("current", "That is not your password.")
        else:
            try:
                change_password(person=person.user, password=said["password"])
            except PasswordRefused as refusal:
                form.blame(refusal)
            else:
                update_session_auth_hash(request, person.user)
                messages.success(
                    request, "Your password is changed. Whoever was signed in as you elsewhere no longer is."
                )
                return redirect("password")
    context = {"section": "delegations", "form": form}
    return render(request, "passwords/own.html", context, status=400 if form.errors else 200)


@require_safe
def password_by_link(request: HttpRequest, text: str) -> HttpResponse:
    """For whoever has the link. It leaves the address at once, so that it stands in no history, no referrer and no more
    logs: the visitor's own session knows from now on which link it was."""
    digest = digest_of(text)
    try:
        holder_of(digest)
    except LinkRefused as refusal:
        response = _refused(request, refusal)
    else:
        request.session[LINK] = digest.hex()
        response = redirect("password-new")
    response["Referrer-Policy"] = "no-referrer"
    return response


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def new_password(request: HttpRequest) -> HttpResponse:
    """For whoever came by a link: no sign-in, once."""
    form = NewPasswordForm(posted(request))
    digest = bytes.fromhex(request.session.get(LINK, ""))
    try:
        holder = holder_of(digest)
        if request.method == "POST" and form.is_valid():
            use_link(digest=digest, password=form.cleaned_data["password"])
            del request.session[LINK]
            return render(request, "passwords/done.html")
    except LinkRefused as refusal:
        return _refused(request, refusal)
    except PasswordRefused as refusal:
        form.blame(refusal)
    context = {"form": form, "holder": holder}
    return render(request, "passwords/by_link.html", context, status=400 if form.errors else 200)


def _refused(request: HttpRequest, refusal: LinkRefused) -> HttpResponse:
    return render(request, "passwords/refused.html", {"refusal": refusal}, status=404)
