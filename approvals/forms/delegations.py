"""Standing in, as a page posts it."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet

MOMENT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")


class DelegationForm(forms.Form):
    use_required_attribute = False  # what is missing is said by the server, in one voice with all else

    giver = forms.ModelChoiceField(
        User.objects.none(),
        label="Whose vote",
        required=False,
        empty_label="My own",
        help_text="For somebody else it counts once another administrator, or a superuser, has confirmed it.",
    )
    taker = forms.ModelChoiceField(User.objects.none(), label="Who votes", empty_label="Choose somebody")
    starts_at = forms.DateTimeField(label="From, UTC", widget=MOMENT)
    ends_at = forms.DateTimeField(label="Until, UTC", widget=MOMENT)

    def __init__(self, *args: Any, givers: QuerySet[User], takers: QuerySet[User], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if givers.exists():
            self.fields["giver"].queryset = givers  # type: ignore[attr-defined]
        else:
            del self.fields["giver"]
        self.fields["taker"].queryset = takers  # type: ignore[attr-defined]
