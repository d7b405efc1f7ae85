"""Proposals for policies and automatic rules, as a page posts them."""

import re
from datetime import UTC, timedelta
from typing import Any

from django import forms

from approvals import canonical
from approvals.errors import FieldErrors
from approvals.forms.spans import SpanField, read_span
from approvals.models import AutomaticRule, PolicyVersion
from approvals.policies.drafts import PolicyDraft, RuleDraft
from approvals.presentation.policy import span
from approvals.states import Risk

RISKS = [("", "any"), *Risk.choices]
SEAT = re.compile(r"(\d{1,4}) of (.+)", re.ASCII)
STAGE = re.compile(r"(.+) for ([\w ]+)")
TEAM = "the team"
AREA = forms.Textarea(attrs={"rows": 3})
CODE = forms.Textarea(attrs={"rows": 4, "class": "code-input", "spellcheck": "false"})


class LinesField(forms.CharField):
    """A tuple of the lines that hold something."""

    widget = AREA

    def clean(self, value: Any) -> Any:
        return tuple(line.strip() for line in (super().clean(value) or "").splitlines() if line.strip())


class DraftForm(forms.Form):
    """What every proposal says. What `errors` of a draft complain about is said at the field that it came from."""

    use_required_attribute = False

    name = forms.CharField(max_length=80)
    agents = LinesField(required=False, help_text="names, one a line; none: every agent")
    tools = LinesField(required=False, help_text="names, one a line, or a beginning followed by *; none: every tool")
    condition = forms.CharField(required=False, widget=CODE, help_text="JSON Schema over the arguments; empty: all")

    def blame(self, errors: FieldErrors) -> None:
        """Show what a service found wrong."""
        for place, message in errors:
            name = place.split("/")[0]
            self.add_error(name if name in self.fields else None, message)


class PolicyForm(DraftForm):
    quorum = LinesField(
        required=False, label="Who must approve", help_text="one a line: 1 of the team, 2 of finance; all lines count"
    )
    risk_at_least = forms.ChoiceField(choices=RISKS, required=False, label="Only for a risk of at least")
    risk = forms.ChoiceField(choices=[("", "as it is"), *Risk.choices], required=False, label="Raise the risk to")
    rejections = forms.IntegerField(min_value=1, max_value=1000, initial=1, label="People who must reject to reject it")
    deadline = SpanField(required=False, help_text="such as 90 min or 1 day 2 h; then it expires")
    minimum_deadline = SpanField(required=False, help_text="the least that an agent may ask for")
    escalation = LinesField(
        required=False, label="After the deadline", help_text="one a line, in order: managers for 1 h"
    )
    grant_life = SpanField(required=False, label="An approval must be used within")
    allow_edits = forms.BooleanField(required=False, initial=True, label="The arguments may be edited")
    require_reason = forms.BooleanField(required=False, label="A reason must be given")
    require_reauthentication = forms.BooleanField(required=False, label="Whoever decides confirms with their password")
    allow_automatic = forms.BooleanField(required=False, label="An automatic rule may approve")
    deny = forms.BooleanField(required=False, label="Reject all that it matches")

    def clean_quorum(self) -> tuple[dict[str, Any], ...]:
        seats = []
        for line in self.cleaned_data["quorum"]:
            seat = SEAT.fullmatch(line)
            if seat is None:
                raise forms.ValidationError(f"“{line}” is not like “2 of finance”")
            seats.append({"group": None if seat[2] == TEAM else seat[2], "count": int(seat[1])})
        return tuple(seats)

    def clean_escalation(self) -> tuple[dict[str, Any], ...]:
        stages = []
        for line in self.cleaned_data["escalation"]:
            stage = STAGE.fullmatch(line)
            seconds = read_span(stage[2]) if stage else None
            if stage is None or seconds is None:
                raise forms.ValidationError(f"“{line}” is not like “managers for 1 h”")
            stages.append({"group": stage[1], "seconds": seconds})
        return tuple(stages)

    def draft(self) -> PolicyDraft:
        """Of a valid form."""
        return PolicyDraft(**self.cleaned_data)


class RuleForm(DraftForm):
    window = SpanField(label="In every", help_text="such as 1 day: the caps count anew then")
    max_count = forms.IntegerField(min_value=1, max_value=1000, label="At most so many, for each agent")
    sum_of = forms.CharField(
        required=False, max_length=200, label="Sum up", help_text="a JSON pointer to a number in the arguments: /amount"
    )
    max_sum = forms.CharField(required=False, max_length=32, label="At most so much in all, for each agent")
    ends_at = forms.DateTimeField(
        label="Until, UTC", widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    )

    def draft(self) -> RuleDraft:
        """Of a valid form."""
        said = {**self.cleaned_data, "ends_at": self.cleaned_data["ends_at"].astimezone(UTC).isoformat()}
        return RuleDraft(**{**said, "condition": said["condition"] or "{}", "max_sum": said["max_sum"] or None})


def draft_of(version: PolicyVersion, *, is_active: bool = True) -> PolicyDraft:
    """A version as a proposal that changes nothing but, perhaps, whether the policy is in force."""
    return PolicyDraft(
        name=version.policy.name,
        is_active=is_active,
        quorum=tuple(canonical.parse(version.quorum)),
        escalation=tuple(canonical.parse(version.escalation)),
        agents=tuple(version.agents),
        tools=tuple(version.tools),
        deadline=_seconds(version.deadline),
        minimum_deadline=_seconds(version.minimum_deadline),
        grant_life=_seconds(version.grant_life),
        risk_at_least=version.risk_at_least,
        condition=version.condition,
        risk=version.risk,
        allow_edits=version.allow_edits,
        require_reason=version.require_reason,
        require_reauthentication=version.require_reauthentication,
        allow_automatic=version.allow_automatic,
        rejections=version.rejections,
        deny=version.deny,
    )


def end_of(rule: AutomaticRule) -> RuleDraft:
    """The proposal that an automatic rule ends."""
    return RuleDraft(
        name=rule.name,
        is_active=False,
        agents=tuple(rule.agents),
        tools=tuple(rule.tools),
        condition=rule.condition,
        window=int(rule.window.total_seconds()),
        max_count=rule.max_count,
        sum_of=rule.sum_of,
        max_sum=None if rule.max_sum is None else f"{rule.max_sum:f}",
        ends_at=rule.ends_at.isoformat(),
    )


def typed(draft: PolicyDraft) -> dict[str, Any]:
    """A draft as it would have been typed into the form."""
    said: dict[str, Any] = {name: getattr(draft, name) for name in PolicyForm.base_fields}
    said |= {name: "\n".join(said[name]) for name in ("agents", "tools")}
    said |= {name: _typed_span(said[name]) for name in ("deadline", "minimum_deadline", "grant_life")}
    said["quorum"] = "\n".join(f"{seat['count']} of {seat['group'] or TEAM}" for seat in draft.quorum)
    said["escalation"] = "\n".join(
        f"{stage['group']} for {_typed_span(stage['seconds'])}" for stage in draft.escalation
    )
    return said


def _seconds(length: timedelta | None) -> int | None:
    return None if length is None else int(length.total_seconds())


def _typed_span(seconds: int | None) -> str:
    return "" if seconds is None else span(timedelta(seconds=seconds))
