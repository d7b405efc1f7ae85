"""Proposals for people, groups, agents and keys, as a page posts them. People are named as they sign in."""

from typing import Any

from django import forms

from approvals.errors import FieldErrors
from approvals.forms.rules import LinesField
from runs.models import Role
from runs.webhooks.addresses import LONGEST_URL

MOMENT = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
NAMES = "as they sign in, one a line"


class ProposalForm(forms.Form):
    """What a service found wrong is said at its field, or above them all."""

    use_required_attribute = False

    def blame(self, errors: FieldErrors) -> None:
        for field, message in errors:
            is_here = field in self.fields
            self.add_error(field if is_here else None, message if is_here else f"The {field} {message}.")


class RolesForm(ProposalForm):
    person = forms.CharField(max_length=150, help_text="the name that they sign in with")
    reviewer = forms.BooleanField(required=False, label="Reviewer: votes")
    operator = forms.BooleanField(required=False, label="Operator: cancels, retries and forks runs")
    auditor = forms.BooleanField(required=False, label="Auditor: reads the audit trail")
    admin = forms.BooleanField(required=False, label="Admin: proposes and confirms changes")

    def asked(self) -> dict[str, Any]:
        """Of a valid form: what the service takes."""
        roles = [role.value for role in Role if self.cleaned_data[role.value]]
        return {"person": self.cleaned_data["person"], "roles": roles}


class GroupForm(ProposalForm):
    group = forms.CharField(max_length=80, help_text="a new name makes a new group")
    add = LinesField(required=False, label="Who joins", help_text=NAMES)
    remove = LinesField(required=False, label="Who leaves", help_text=NAMES)

    def asked(self) -> dict[str, Any]:
        return dict(self.cleaned_data)


class AgentForm(ProposalForm):
    owners = LinesField(required=False, help_text=f"{NAMES}; they may not vote on what it asks")
    team = forms.CharField(max_length=80, help_text="whose reviewers decide")

    def asked(self) -> dict[str, Any]:
        return dict(self.cleaned_data)


class WebhookForm(ProposalForm):
    url = forms.CharField(
        max_length=LONGEST_URL, label="Address", help_text="https://, without a name or password in it"
    )
    new_secret = forms.BooleanField(required=False, label="Draw a new secret: it is shown once and signs from then on")

    def asked(self) -> dict[str, Any]:
        return dict(self.cleaned_data)


class KeyForm(ProposalForm):
    scopes = LinesField(label="What it may do", help_text="one a line, such as runs:read or workflow:refund-agent")
    expires_at = forms.DateTimeField(
        required=False, label="Until, UTC", help_text="empty: until it is revoked", widget=MOMENT
    )

    def asked(self) -> dict[str, Any]:
        return dict(self.cleaned_data)
