"""The tokens by which a person's scripts act as that person."""

from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

TOKEN_LIFE = timedelta(days=30)  # at most


class TokenScope(models.TextChoices):
    READ = "read"
    VOTE = "vote"


class PersonalToken(models.Model):
    """A bearer token of a person. Only its SHA-256 is kept; the prefix finds the row."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="personal_tokens")
    name = models.CharField(max_length=80, help_text="What it is for, in the person's words.")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=8, choices=TokenScope.choices))
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "runs_personal_token"
        constraints = (
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at"), expires_at__lte=F("created_at") + TOKEN_LIFE),
                name="runs_personal_token_ends_soon",
            ),
            models.CheckConstraint(
                condition=Q(scopes__contains=[TokenScope.READ], scopes__contained_by=TokenScope.values),
                name="runs_personal_token_scopes_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.person_id}"
