"""A token, as the page asks for it."""

from django import forms

from runs.models import TOKEN_LIFE


class TokenForm(forms.Form):
    use_required_attribute = False  # what is missing is said by the server, in one voice with all else

    name = forms.CharField(label="What it is for", max_length=80)
    days = forms.IntegerField(
        label="Days that it works", min_value=1, max_value=TOKEN_LIFE.days, initial=7,
        help_text=f"at most {TOKEN_LIFE.days}",
    )  # fmt: skip
    may_vote = forms.BooleanField(label="It may also vote as me, though never for high risk", required=False)
    password = forms.CharField(
        label="Your password", strip=False, max_length=1024,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )  # fmt: skip
