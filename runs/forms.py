"""What the pages of runs are asked for, in their addresses and forms."""

from typing import Any

from django import forms
from django.db.models import QuerySet

from runs.models import Agent
from runs.states import RunStatus


class RunFilter(forms.Form):
    """The list's filters. What cannot be understood filters nothing."""

    q = forms.CharField(required=False, max_length=200)
    status = forms.ChoiceField(required=False, choices=[("", "Status"), *RunStatus.choices])

    def __init__(self, *args: Any, agents: QuerySet[Agent], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["agent"] = forms.ModelChoiceField(required=False, queryset=agents)
        self.is_valid()

    def chosen(self) -> dict[str, Any]:
        return {name: value for name, value in self.cleaned_data.items() if value}


class CancelForm(forms.Form):
    reason = forms.CharField(required=False, max_length=2000)


class ForkForm(forms.Form):
    checkpoint = forms.IntegerField(min_value=0)
    acknowledged = forms.BooleanField(required=False)


class CompareForm(forms.Form):
    """Two checkpoints by their numbers, in any order."""

    before = forms.IntegerField(min_value=0)
    after = forms.IntegerField(min_value=0)

    def chosen(self) -> tuple[int, int]:
        """The earlier one first."""
        first, second = sorted((self.cleaned_data["before"], self.cleaned_data["after"]))
        return first, second
