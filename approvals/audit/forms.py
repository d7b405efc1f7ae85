"""The audit page's filters, as they stand in its address."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet

from approvals.audit.events import EventType
from approvals.audit.exporting import Format
from approvals.audit.queries import Filters
from runs.models import Agent, Team


class AuditFilter(forms.Form):
    """What cannot be understood is said on the page and filters nothing."""

    text = forms.CharField(required=False, max_length=200)
    team = forms.ModelChoiceField(Team.objects.none(), required=False, empty_label="Team")
    type = forms.ChoiceField(required=False, choices=[("", "Event"), *((value, value) for value in EventType.values)])
    person = forms.ModelChoiceField(User.objects.none(), required=False, empty_label="Person", to_field_name="username")
    agent = forms.ModelChoiceField(Agent.objects.none(), required=False, empty_label="Agent")
    tool = forms.CharField(required=False, max_length=128)
    since = forms.DateTimeField(required=False, label="From")
    until = forms.DateTimeField(required=False, label="To, not included")
    approval = forms.UUIDField(required=False)
    run = forms.UUIDField(required=False)

    def __init__(self, *args: Any, teams: QuerySet[Team], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose("team", teams)
        self._choose("person", User.objects.filter(memberships__team__in=teams).distinct().order_by("username"))
        self._choose("agent", Agent.objects.filter(team__in=teams))
        self.is_valid()

    def filters(self) -> Filters:
        """Those that could be understood."""
        chosen = {name: value for name, value in self.cleaned_data.items() if value}
        keys: dict[str, Any] = {name: getattr(value, "pk", value) for name, value in chosen.items()}
        return Filters(**keys)

    def address(self) -> dict[str, str]:
        """The filters that are set, for links to this page."""
        return {name: self.data[name] for name in self.cleaned_data if self.data.get(name)}

    def _choose(self, name: str, choices: QuerySet[Any]) -> None:
        field: Any = self.fields[name]
        field.queryset = choices


class ExportForm(forms.Form):
    format = forms.ChoiceField(choices=[(str(choice), str(choice)) for choice in Format])
