"""What people are to be told by mail: an outbox, so that nothing is sent inside a transaction and nothing is lost."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from approvals.models.approvals import Approval


class NoticeKind(models.TextChoices):
    ASKED = "asked"
    REMINDER = "reminder"


class Notice(models.Model):
    """One thing to tell one person about one approval, once. `claimed_until`: somebody is sending it."""

    approval = models.ForeignKey(Approval, on_delete=models.CASCADE, related_name="notices", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=8, choices=NoticeKind.choices)
    created_at = models.DateTimeField(db_default=Now(), db_index=True)
    claimed_until = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = (models.Index(fields=("id",), condition=Q(sent_at__isnull=True), name="approvals_notice_unsent"),)
        constraints = (
            models.UniqueConstraint(fields=("approval", "person", "kind"), name="approvals_notice_once"),
            models.CheckConstraint(condition=Q(kind__in=NoticeKind.values), name="approvals_notice_kind_known"),
        )

    def __str__(self) -> str:
        return f"{self.kind} for {self.person_id}"
