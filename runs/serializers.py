"""The shapes of runs on the wire."""

from typing import Any

from django.conf import settings
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from checkpoints import codec
from checkpoints.errors import Unreadable
from checkpoints.models import Checkpoint
from runs.bodies import opened, result_place
from runs.fields import Anything, Choice, Flag, Moment, Object, Strict, Text, Whole
from runs.models import Agent, Run
from runs.paging import ListQuery
from runs.services.external import ExternalClaim
from runs.services.posted import LONGEST_TITLE
from runs.states import OUTSIDE, RunKind, RunStatus


class AgentSerializer(serializers.ModelSerializer[Agent]):
    class Meta:
        model = Agent
        fields = ("id", "name")


class ForkedFrom(serializers.Serializer[Run]):
    id = serializers.UUIDField(source="parent_id")
    checkpoint = serializers.IntegerField(source="parent_seq")


class RunError(serializers.Serializer[Run]):
    type = serializers.CharField(source="error_type")
    message = serializers.CharField(source="error")


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run as lists show it."""

    status = serializers.ChoiceField(RunStatus.choices, source="head.status")
    reason = serializers.CharField(source="head.reason", help_text="What a suspended run waits for.")
    detail = serializers.CharField(source="head.detail", help_text="Why it is blocked, or what it waits for.")
    workflow = serializers.CharField(source="head.workflow")
    phase = serializers.CharField(source="head.phase")
    checkpoint = serializers.SerializerMethodField(help_text="The number of the newest checkpoint.")
    agent = AgentSerializer()
    forked_from = serializers.SerializerMethodField()
    wake_at = serializers.DateTimeField(source="head.wake_at", allow_null=True)
    updated_at = serializers.DateTimeField(source="head.updated_at")
    url = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields: tuple[str, ...] = (
            "id",
            "status",
            "reason",
            "detail",
            "kind",
            "title",
            "external_id",
            "agent",
            "workflow",
            "phase",
            "checkpoint",
            "forked_from",
            "wake_at",
            "created_at",
            "updated_at",
            "finished_at",
            "erased_at",
            "url",
        )

    def get_checkpoint(self, run: Run) -> int | None:
        return run.head.head_seq if run.head.head_seq >= 0 else None

    @extend_schema_field(ForkedFrom(allow_null=True))
    def get_forked_from(self, run: Run) -> Any:
        return ForkedFrom(run).data if run.parent_id else None

    def get_url(self, run: Run) -> str:
        return run_url(run)


class RunDetailSerializer(RunSerializer):
    """A run with how it ended."""

    result = serializers.SerializerMethodField(help_text="What a completed run gave; null before.")
    error = serializers.SerializerMethodField(help_text="Why a failed run failed.")

    class Meta(RunSerializer.Meta):
        fields = (*RunSerializer.Meta.fields, "result", "error")

    @extend_schema_field(OpenApiTypes.ANY)
    def get_result(self, run: Run) -> Any:
        if run.result is None:
            return None
        try:
            result = opened(run.result, result_place(run.pk), what="result")
        except Unreadable as error:
            return {"py/unreadable": str(error)}
        # What an agent reported is JSON already: to mark it as Python's would change it.
        return result if run.resume_mode in OUTSIDE else codec.to_jsonable(result)

    @extend_schema_field(RunError(allow_null=True))
    def get_error(self, run: Run) -> Any:
        return RunError(run).data if run.head.status == RunStatus.FAILED else None


class SnapshotSerializer(serializers.Serializer[Any]):
    """A checkpoint's content. A value that JSON has no type for is an object whose key begins with `py/`."""

    seq = serializers.IntegerField()
    workflow = serializers.CharField()
    schema = serializers.IntegerField()
    phase = serializers.CharField()
    turn = serializers.IntegerField()
    reason = serializers.CharField()
    at = serializers.DateTimeField()
    digest = serializers.CharField(help_text="Hex SHA-256.")
    state = serializers.DictField()
    history = serializers.ListField()
    position = serializers.JSONField()
    pending = serializers.JSONField()


class CheckpointSerializer(serializers.ModelSerializer[Checkpoint]):
    digest = serializers.SerializerMethodField(help_text="Hex SHA-256.")

    class Meta:
        model = Checkpoint
        fields = ("seq", "workflow", "schema", "phase", "turn", "reason", "at", "size", "history_length", "digest")

    def get_digest(self, checkpoint: Checkpoint) -> str:
        return bytes(checkpoint.digest).hex()


class TimelineEntrySerializer(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="run, checkpoint, step, gate, event or webhook.")
    what = serializers.CharField()
    facts = serializers.DictField()


class StartRun(Strict):
    workflow = Text(max_length=80)
    input = Object(default=dict)
    title = Text(max_length=LONGEST_TITLE, default="")


class CancelRun(Strict):
    reason = Text(max_length=2000, allow_blank=True, default="")


class ForkRun(Strict):
    checkpoint = Whole(min_value=0)
    acknowledge_effects = Flag(default=False, help_text="Say that you know what the parent did after that checkpoint.")


class TellRun(Strict):
    payload = Anything(default=None, allow_null=True)


class ClaimRun(Strict):
    resume_token = Text(max_length=40, required=False, help_text="Of the claim that is to last longer.")


class ClaimSerializer(serializers.Serializer[ExternalClaim]):
    resume_token = serializers.CharField(source="token")
    expires_at = serializers.DateTimeField()
    checkpoint = serializers.IntegerField(help_text="The number of the checkpoint to go on from.")


class FinishRun(Strict):
    """How the agent's own code ended the run: with a result, or with an error."""

    resume_token = Text(max_length=40, required=False, help_text="Of the claim, if the run was claimed.")
    result = Anything(required=False, allow_null=True)
    error = Text(max_length=10_000, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "error" in attrs and "result" in attrs:
            raise serializers.ValidationError("A run ends with a result or with an error.")
        return attrs


class RunQuery(ListQuery):
    status = Choice(RunStatus.choices, required=False, source="head__status")
    kind = Choice(RunKind.choices, required=False)
    workflow = Text(max_length=80, required=False, source="head__workflow")
    external_id = Text(max_length=200, required=False)


class SnapshotQuery(serializers.Serializer[Any]):
    seq = serializers.IntegerField(min_value=0, required=False, help_text="Which checkpoint; default: the newest.")


class CheckpointQuery(serializers.Serializer[Any]):
    limit = serializers.IntegerField(min_value=1, max_value=200, default=50)
    before = serializers.IntegerField(min_value=0, required=False, help_text="Only checkpoints with a lower number.")


class TimelineQuery(serializers.Serializer[Any]):
    limit = serializers.IntegerField(min_value=1, max_value=200, default=100)
    before = Moment(required=False, help_text="Only what happened before this time.")


def run_url(run: Run) -> str:
    return settings.BASE_URL + reverse("api-run", args=[run.pk])
