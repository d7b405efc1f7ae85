"""Setting a password: one's own with the old one, or by a link. A GET changes nothing."""

from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from runs.access import signed_in
from runs.passwords.forms import ChangePasswordForm, NewPasswordForm
from runs.principals import Person
from runs.services.passwords import LinkRefused, PasswordRefused, change_password, holder_of, use_link


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def own_password(request: HttpRequest, person: Person) -> HttpResponse:
    """One's own. It ends every other session of the person's."""
    form = ChangePasswordForm(request.POST if request.method == "POST" else None)
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


@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def password_by_link(request: HttpRequest, text: str) -> HttpResponse:
    """For whoever has the link: no sign-in, once."""
    form = NewPasswordForm(request.POST if request.method == "POST" else None)
    try:
        holder = holder_of(text)
        if request.method == "POST" and form.is_valid():
            use_link(text=text, password=form.cleaned_data["password"])
            return render(request, "passwords/done.html")
    except LinkRefused as refusal:
        return render(request, "passwords/refused.html", {"refusal": refusal}, status=404)
    except PasswordRefused as refusal:
        form.blame(refusal)
    context = {"form": form, "holder": holder}
    return render(request, "passwords/by_link.html", context, status=400 if form.errors else 200)
