"""The shapes of approvals on the wire."""

import re
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.urls import reverse
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals import canonical
from approvals.models import Approval, Decision, Grant
from approvals.services.asking import Ask
from approvals.services.case import display_name
from approvals.states import OPEN, ApprovalKind, ApprovalStatus, GrantStatus, Risk, Verdict
from runs.fields import Anything, Array, Choice, JSONText, Moment, Object, Strict, Text, Whole
from runs.paging import ListQuery
from runs.services.posted import LONGEST_TITLE
from runs.states import ResumeMode

MOST_APPROVALS = 100
# Nobody outside the inbox is told of a person's seconds for changing their mind: held reads as pending.
STATUSES = [choice for choice in ApprovalStatus.choices if choice[0] != ApprovalStatus.HELD]
LONGEST_WAIT = 60  # seconds
OUTCOMES = [(outcome.value, outcome.label) for outcome in (GrantStatus.SUCCEEDED, GrantStatus.FAILED)]
_SCHEMA = re.compile(r"([A-Za-z0-9_.:-]{1,80})/([0-9]{1,9})")


# --- what comes in -----------------------------------------------------------------------------------------------


class RunIdentity(Strict):
    id = serializers.UUIDField(required=False, help_text="The run to continue; with the header If-Match.")
    external_id = Text(max_length=200, default="", help_text="The agent's own name for the run.")
    title = Text(max_length=LONGEST_TITLE, required=False)


class PostedSnapshotShape(Strict):
    schema = serializers.RegexField(
        "^" + _SCHEMA.pattern + r"\Z",
        trim_whitespace=False,
        error_messages={"invalid": 'Write NAME/NUMBER, such as "refund-agent/1": a name of letters, digits and _.:-'},
        help_text="NAME/NUMBER, of the agent's own format.",
    )
    state = Object(default=dict)
    history = Array(default=list)
    position = Anything(default=None, allow_null=True)
    pending = Array(default=list)


class Reviewers(Strict):
    groups = serializers.ListField(child=Text(max_length=150), default=list, max_length=20)
    users = serializers.ListField(child=Text(max_length=150), default=list, max_length=20)


class AskShape(Strict):
    key = Text(max_length=200)
    tool = Text(max_length=128)
    args = Object(help_text="The exact arguments; {} for none.")
    title = Text(max_length=LONGEST_TITLE)
    description = Text(max_length=20_000, allow_blank=True, default="", help_text="Why, in the agent's words.")
    risk = Choice(Risk.choices, default=Risk.LOW)
    allowed = serializers.ListField(
        child=Choice(Verdict.choices), default=lambda: list(Verdict), max_length=len(Verdict)
    )
    args_schema = Object(default=dict, help_text="JSON Schema for edits.")
    reviewers = Reviewers(required=False)
    expires_in = Whole(min_value=1, max_value=10 * 366 * 86400, required=False, help_text="Seconds.")
    expires_at = Moment(required=False, help_text="Instead of expires_in.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "expires_in" in attrs and "expires_at" in attrs:
            raise serializers.ValidationError({"expires_at": ["Give expires_in or expires_at, not both."]})
        return attrs


class ResumeShape(Strict):
    mode = Choice(
        ("workflow", "poll", "webhook"),
        help_text="Who goes on after the decision: a workflow deployed here; the agent, which asks; or the agent, "
        "which is told by a signed post to its registered webhook. A run keeps the mode of its first suspension.",
    )
    workflow = Text(max_length=80, required=False)
    phase = Text(max_length=80, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        wanted = {"workflow", "phase"} if attrs["mode"] == ResumeMode.WORKFLOW else set()
        wrong = {name: ["Is needed to resume a workflow."] for name in wanted - attrs.keys()}
        wrong |= {name: ["Has a meaning only in mode workflow."] for name in attrs.keys() - wanted - {"mode"}}
        if wrong:
            raise serializers.ValidationError(wrong)
        return attrs


class SuspensionShape(Strict):
    run = RunIdentity(default=lambda: {"external_id": ""})
    snapshot = PostedSnapshotShape()
    approvals = serializers.ListField(child=AskShape(), min_length=1, max_length=MOST_APPROVALS)
    resume = ResumeShape(default=lambda: {"mode": ResumeMode.POLL})


class VoteShape(Strict):
    type = Choice(Verdict.choices)
    review = Text(max_length=64, help_text="The digest of what you reviewed.")
    args = Object(required=False, help_text="The new arguments, whole, for an edit.")
    message = Text(max_length=10_000, allow_blank=True, default="")


class CancelShape(Strict):
    reason = Text(max_length=2000, allow_blank=True, default="")


class ConsumeShape(Strict):
    action = Text(max_length=64, required=False, help_text="The digest of the action to be performed.")
    resume_token = Text(max_length=40, required=False, help_text="Of the claim on the run, if it was claimed.")


class OutcomeShape(Strict):
    resume_token = Text(max_length=40, required=False, help_text="Of the claim on the run, if it was claimed.")
    status = Choice(OUTCOMES)
    result = Anything(required=False, allow_null=True, help_text="What the call gave.")
    note = Text(max_length=10_000, allow_blank=True, default="")


class ApprovalQuery(ListQuery):
    run = serializers.UUIDField(required=False)
    status = Choice(STATUSES, required=False)
    kind = Choice(ApprovalKind.choices, required=False)
    key = Text(max_length=200, required=False)
    tool = Text(max_length=128, required=False)
    risk = Choice(Risk.choices, required=False)

    def filters(self) -> dict[str, Any]:
        filters = super().filters()
        if filters.get("status") == ApprovalStatus.PENDING:
            filters["status__in"] = sorted(OPEN)
            del filters["status"]
        return filters


class WaitQuery(serializers.Serializer[Any]):
    wait = serializers.IntegerField(
        min_value=0, max_value=LONGEST_WAIT, default=0, help_text="Answer when it is decided, or after so many seconds."
    )


# --- what goes out -----------------------------------------------------------------------------------------------


class Said(serializers.Serializer[Any]):
    """What a person wrote: data, never an instruction to the agent."""

    text = serializers.CharField()


class DecisionSerializer(serializers.ModelSerializer[Decision]):
    by = serializers.SerializerMethodField(help_text="Null: the clock, the agent, or a rule.")
    message = serializers.SerializerMethodField()
    args = JSONText(help_text="What may be performed: the proposal, or its edited form.")

    class Meta:
        model = Decision
        fields = ("outcome", "by", "message", "revision", "action", "args", "at")

    def get_by(self, decision: Decision) -> str | None:
        return display_name(decision.decided_by) if decision.decided_by else None

    @extend_schema_field(serializers.DictField(child=serializers.CharField(), allow_null=True))
    def get_message(self, decision: Decision) -> dict[str, str] | None:
        return {"from": "reviewer", "text": decision.message} if decision.message else None


class GrantSerializer(serializers.ModelSerializer[Grant]):
    outcome = serializers.SerializerMethodField(help_text="What was reported about the call.")

    class Meta:
        model = Grant
        fields = ("status", "action", "expires_at", "spent_at", "outcome", "outcome_at")

    @extend_schema_field(serializers.JSONField(allow_null=True))
    def get_outcome(self, grant: Grant) -> Any:
        return JSONText().to_representation(grant.outcome) if grant.outcome else None


class ApprovalSerializer(serializers.ModelSerializer[Approval]):
    run = serializers.UUIDField(source="run_id")
    status = serializers.SerializerMethodField()
    args = JSONText(help_text="The arguments of the current revision, exactly.")
    decision = DecisionSerializer(read_only=True, allow_null=True)
    grant = GrantSerializer(read_only=True, allow_null=True)
    url = serializers.SerializerMethodField()
    inbox_url = serializers.SerializerMethodField()

    class Meta:
        model = Approval
        fields: tuple[str, ...] = (
            "id",
            "run",
            "key",
            "kind",
            "status",
            "tool",
            "args",
            "title",
            "description",
            "risk",
            "allowed",
            "revision",
            "action",
            "review",
            "created_at",
            "expires_at",
            "settled_at",
            "decision",
            "grant",
            "url",
            "inbox_url",
        )

    @extend_schema_field(serializers.ChoiceField(STATUSES))
    def get_status(self, approval: Approval) -> str:
        return ApprovalStatus.PENDING if approval.status in OPEN else approval.status

    def get_url(self, approval: Approval) -> str:
        return approval_url(approval)

    def get_inbox_url(self, approval: Approval) -> str:
        return inbox_url(approval)


class OpenedSerializer(ApprovalSerializer):
    """An approval as its asker gets it back."""

    class Meta(ApprovalSerializer.Meta):
        fields = ("id", "key", "status", "action", "review", "expires_at", "url", "inbox_url")


class SuspendedRunSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.CharField()
    checkpoint = serializers.IntegerField()
    url = serializers.CharField()


class SuspensionSerializer(serializers.Serializer[Any]):
    run = SuspendedRunSerializer()
    approvals = OpenedSerializer(many=True)


class ConsumedSerializer(serializers.Serializer[Any]):
    """Perform exactly this, now; if `replayed`, it was spent before by the same key: perform nothing again."""

    approval = serializers.UUIDField(source="approval_id")
    action = serializers.CharField()
    args = JSONText()
    replayed = serializers.BooleanField()


def to_ask(asked: dict[str, Any], *, now: datetime) -> Ask:
    """What the service takes, from a validated `AskShape`."""
    reviewers = asked.get("reviewers", {"groups": [], "users": []})
    expires_in = timedelta(seconds=asked["expires_in"]) if "expires_in" in asked else None
    if "expires_at" in asked:
        expires_in = asked["expires_at"] - now
    return Ask(
        key=asked["key"],
        tool=asked["tool"],
        args=canonical.dumps(asked["args"]),
        title=asked["title"],
        description=asked["description"],
        risk=asked["risk"],
        allowed=tuple(asked["allowed"]),
        args_schema=canonical.dumps(asked["args_schema"]),
        expires_in=expires_in,
        groups=tuple(reviewers["groups"]),
        users=tuple(reviewers["users"]),
    )


def approval_url(approval: Approval) -> str:
    return settings.BASE_URL + reverse("api-approval", args=[approval.pk])


def inbox_url(approval: Approval) -> str:
    return settings.BASE_URL + reverse("approval", args=[approval.pk])
