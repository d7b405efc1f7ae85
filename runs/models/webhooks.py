"""Where an agent is told that a run of its goes on, and what is to be told."""

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.models.agents import Agent
from runs.models.runs import Run
from runs.states import PostState, WebhookStanding


class _Addressed(models.Model):
    url = models.CharField(max_length=2000)

    class Meta:
        abstract = True

    @property
    def shown_url(self) -> str:
        """Without its query, which may hold what is not for everybody."""
        return self.url.partition("?")[0]


class Webhook(_Addressed):
    """The address that an agent's posts go to, used once it is verified. `secret` is sealed.

    `claim` goes up at each attempt, as a run's epoch does: whoever holds an older one records nothing.
    """

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, primary_key=True, related_name="webhook")
    secret = models.BinaryField(help_text="What signs the posts.")
    created_at = models.DateTimeField(db_default=Now())
    set_at = models.DateTimeField(db_default=Now(), help_text="When its address was last set, or its secret.")
    verified_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True, help_text="When the receiver answered 410.")
    failing_since = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="In a row.")
    last_error = models.CharField(max_length=300, blank=True, default="")
    rests_until = models.DateTimeField(null=True, blank=True, help_text="No attempt before.")
    claim = models.BigIntegerField(default=0)
    claimed_until = models.DateTimeField(null=True, blank=True, help_text="Somebody is at an attempt.")
    rung_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "runs_webhook"
        constraints = (
            models.CheckConstraint(
                condition=Q(failing_since__isnull=True, failures=0) | Q(failing_since__isnull=False, failures__gt=0),
                name="runs_webhook_fails_since",
            ),
        )

    def __str__(self) -> str:
        return f"webhook of {self.agent_id}"

    @property
    def standing(self) -> tuple[WebhookStanding, datetime | None]:
        """How it does, and since when; it was never verified since any time."""
        if self.gone_at:
            return WebhookStanding.GONE, self.gone_at
        if self.verified_at is None:
            return WebhookStanding.NOT_VERIFIED, None
        if self.failing_since:
            return WebhookStanding.FAILING, self.failing_since
        return WebhookStanding.VERIFIED, self.verified_at


class DrawnWebhook(_Addressed):
    """What an agent's webhook is to be once somebody lets it work: `secret` is sealed, None keeps the one that it has.

    A row of its own, so that neither an address's query nor a secret stands in what is proposed, read and exported.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
    secret = models.BinaryField(null=True, blank=True, help_text="What is to sign the posts.")

    class Meta:
        db_table = "runs_drawn_webhook"

    def __str__(self) -> str:
        return f"drawn webhook of {self.agent_id}"


class WebhookPost(models.Model):
    """The outbox: one thing that an agent is to be told about a run, written in the transaction that made it so.

    `sequence` counts a run's posts from 1. At most one of a run's is pending: a newer one supersedes it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False, help_text="The header webhook-id.")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="webhook_posts", db_index=False)
    sequence = models.PositiveIntegerField()
    type = models.CharField(max_length=40)
    checkpoint = models.IntegerField(help_text="The run's newest, when this was written.")
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=PostState.choices, default=PostState.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    gives_up_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        db_table = "runs_webhook_post"
        constraints = (
            models.UniqueConstraint(fields=("run", "sequence"), name="runs_webhook_post_in_sequence"),
            models.UniqueConstraint(
                fields=("run",), condition=Q(state=PostState.PENDING), name="runs_webhook_post_one_pending"
            ),
            models.CheckConstraint(condition=Q(state__in=PostState.values), name="runs_webhook_post_state_known"),
            models.CheckConstraint(
                condition=Q(state=PostState.PENDING, settled_at__isnull=True)
                | (~Q(state=PostState.PENDING) & Q(settled_at__isnull=False)),
                name="runs_webhook_post_settled_has_a_time",
            ),
        )
        indexes = (
            models.Index(
                fields=("agent", "next_attempt_at"),
                condition=Q(state=PostState.PENDING),
                name="runs_webhook_post_due",
            ),
            models.Index(
                fields=("settled_at",), condition=~Q(state=PostState.PENDING), name="runs_webhook_post_settled"
            ),
            models.Index(
                fields=("created_at",),
                condition=Q(state__in=(PostState.PENDING, PostState.GIVEN_UP)),
                name="runs_webhook_post_untold",
            ),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.sequence} of {self.run_id}"
