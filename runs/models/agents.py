"""Programs that own runs, and the keys that they sign in with."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from runs.models.teams import Team


class Scope(models.TextChoices):
    """What a key may do; `workflow:NAME` scopes, one per workflow an external agent may enter, come on top."""

    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    APPROVALS_READ = "approvals:read"
    APPROVALS_WRITE = "approvals:write"


class OnCredentials(models.TextChoices):
    """What becomes of an input or snapshot that an agent posts with a credential in it."""

    REFUSE = "refuse"
    REDACT = "redact"


class Agent(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="agents")
    name = models.CharField(max_length=80)
    target = models.CharField(
        max_length=120, blank=True, help_text="The account or environment that this agent acts on."
    )
    on_credentials = models.CharField(max_length=6, choices=OnCredentials.choices, default=OnCredentials.REFUSE)
    owners = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="owned_agents", blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("team", "name"), name="runs_agent_name_per_team"),
            models.CheckConstraint(
                condition=Q(on_credentials__in=OnCredentials.values), name="runs_agent_on_credentials_known"
            ),
        )

    def __str__(self) -> str:
        return self.name


class AgentKey(models.Model):
    """A bearer key. Only its SHA-256 is kept; the prefix finds the row."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="keys")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=120))
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=~Q(prefix=""), name="runs_agentkey_prefix_present"),
            models.CheckConstraint(condition=~Q(scopes=[]), name="runs_agentkey_scopes_present"),
        )

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.agent}"
