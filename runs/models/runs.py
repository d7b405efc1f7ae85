"""A run: who it is (`Run`, written at its start and its end) and where it stands (`RunHead`, written all the time)."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.models.agents import Agent, AgentKey
from runs.models.soundness import sound
from runs.models.teams import Team
from runs.states import ResumeMode, RunKind, RunStatus, SuspendReason


class Run(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="runs", editable=False, db_index=False)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="runs", db_index=False)
    key = models.ForeignKey(AgentKey, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    kind = models.CharField(max_length=8, choices=RunKind.choices)
    resume_mode = models.CharField(max_length=8, choices=ResumeMode.choices, default=ResumeMode.HOSTED)
    external_id = models.CharField(max_length=200, blank=True)
    title = models.CharField(max_length=200)
    input = models.BinaryField(help_text="The run's input, encoded by the checkpoint codec.")
    requesters = models.ManyToManyField(
        settings.AUTH_USER_MODEL,
        related_name="requested_runs",
        blank=True,
        help_text="Who started, retried or forked it; they may not vote on its approvals.",
    )
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="forks")
    parent_seq = models.IntegerField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    erased_at = models.DateTimeField(null=True, blank=True, help_text="When its content was erased.")
    result = models.BinaryField(null=True, blank=True, help_text="What the run completed with, encoded.")
    error_type = models.CharField(max_length=120, blank=True)
    error = models.TextField(blank=True)
    traceback = models.TextField(blank=True)

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=("team", "-created_at", "-id"), name="runs_run_newest"),
            models.Index(fields=("agent", "-created_at"), name="runs_run_of_agent"),
            models.Index(fields=("team", "-finished_at"), condition=~Q(error_type=""), name="runs_run_failed"),
            models.Index(fields=("agent", "external_id"), condition=~Q(external_id=""), name="runs_run_external_id"),
        )
        constraints = (sound("runs_run", "kind", "resume_mode", "parent", "parent_seq"),)

    def __str__(self) -> str:
        return self.title


class RunHead(models.Model):
    """Where a run stands. Narrow, updated in place (HOT): `lease`, `head_seq`, `updated_at` are in no index.

    Written only by conditional updates that carry `epoch` (a worker) or under the row's lock (everyone else).
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="head")
    status = models.CharField(max_length=9, choices=RunStatus.choices)
    reason = models.CharField(max_length=8, choices=SuspendReason.choices, blank=True, default="")
    detail = models.TextField(blank=True, default="", help_text="Why it is blocked, or what it waits for.")
    workflow = models.CharField(max_length=80, blank=True, default="")
    schema = models.IntegerField(default=1)
    phase = models.CharField(max_length=80, blank=True, default="")
    turn = models.IntegerField(default=0)
    head_seq = models.IntegerField(default=-1, help_text="The newest checkpoint's number; -1 before the first.")
    epoch = models.BigIntegerField(default=0)
    lease = models.DateTimeField(null=True, blank=True)
    draining = models.BooleanField(default=False)
    worker = models.CharField(max_length=120, blank=True, default="", help_text="For people to read; never identity.")
    build = models.CharField(max_length=40, blank=True, default="", help_text="The code that last ran or blocked it.")
    wake_at = models.DateTimeField(null=True, blank=True)
    rung_at = models.DateTimeField(null=True, blank=True)
    rings = models.SmallIntegerField(default=0)
    crashes = models.SmallIntegerField(default=0)
    failures = models.SmallIntegerField(default=0)
    deliveries = models.IntegerField(default=0)
    updated_at = models.DateTimeField(db_default=Now())
    queued_at = models.DateTimeField(
        db_default=Now(), help_text="Since when it is queued, or last was; a trigger sets it."
    )

    class Meta:
        db_table = "runs_head"
        indexes = (
            models.Index(
                fields=("workflow", "schema", "queued_at"),
                condition=Q(status=RunStatus.QUEUED),
                name="runs_head_queue",
            ),
            models.Index(fields=("run",), condition=Q(status=RunStatus.RUNNING), name="runs_head_running"),
            models.Index(
                fields=("wake_at",),
                condition=Q(status=RunStatus.SUSPENDED, wake_at__isnull=False),
                name="runs_head_timers",
            ),
            models.Index(
                fields=("status", "run"),
                condition=Q(status__in=(RunStatus.BLOCKED, RunStatus.FAILED)),
                name="runs_head_attention",
            ),
        )
        constraints = (sound("runs_head", "status", "reason", "detail", "lease", "epoch"),)

    def __str__(self) -> str:
        return f"{self.run_id} {self.status}"
