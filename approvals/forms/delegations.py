"""Standing in, as a page posts it."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet

MOMENT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class DelegationForm(forms.Form):
    use_required_attribute = False  # what is missing is said by the server, in one voice with all else

    taker = forms.ModelChoiceField(User.objects.none(), label="Who votes for you", empty_label="Choose somebody")
    starts_at = forms.DateTimeField(label="From, UTC", widget=MOMENT)
    ends_at = forms.DateTimeField(label="Until, UTC", widget=MOMENT)

    def __init__(self, *args: Any, takers: QuerySet[User], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["taker"].queryset = takers  # type: ignore[attr-defined]
