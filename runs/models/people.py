"""Since when a person's password is theirs, and the links by which somebody gets a new one."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class Credential(models.Model):
    """When a person's password was last set. Without a row: when they joined.

    `vouched_at`: until then the operator, on the server's command line, stood for what the person was and had.
    """

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="credential"
    )
    set_at = models.DateTimeField()
    vouched_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.person_id} since {self.set_at:%Y-%m-%d}"


class ResetLink(models.Model):
    """Lets whoever has it set the person's password, once and until `expires_at`. Only its SHA-256 is kept."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="reset_links")
    digest = models.BinaryField(max_length=32, unique=True)
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True, help_text="When it was used, or another one was.")

    class Meta:
        db_table = "runs_reset_link"
        constraints = (
            models.CheckConstraint(condition=Q(expires_at__gt=F("made_at")), name="runs_reset_link_ends_later"),
        )

    def __str__(self) -> str:
        return f"for {self.person_id} until {self.expires_at:%Y-%m-%d %H:%M}"
