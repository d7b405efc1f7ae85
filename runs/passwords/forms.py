"""A password, as a page posts it."""

from typing import Any

from django import forms

from runs.services.passwords import PasswordRefused


class NewPasswordForm(forms.Form):
    use_required_attribute = False  # what is missing is said by the server, in one voice with all else

    password = forms.CharField(
        label="New password", strip=False, max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )  # fmt: skip
    again = forms.CharField(
        label="The same again", strip=False, max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )  # fmt: skip

    def clean(self) -> dict[str, Any]:
        said = super().clean() or self.cleaned_data
        if "password" in said and "again" in said and said["password"] != said["again"]:
            self.add_error("again", "The two are not the same.")
        return said

    def blame(self, refusal: PasswordRefused) -> None:
        """Show why a service did not take it."""
        for reason in refusal.reasons:
            self.add_error("password", reason)


class ChangePasswordForm(NewPasswordForm):
    field_order = ("current", "password", "again")

    current = forms.CharField(
        label="Your password now", strip=False, max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )  # fmt: skip
