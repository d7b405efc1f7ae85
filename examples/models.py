"""What the examples act on: a payment provider's stub, and a table of migrated records."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Refund(models.Model):
    """One call to the stub's `POST /refunds`, duplicates included, so that anyone can count."""

    idempotency_key = models.CharField(max_length=200)
    order_id = models.CharField(max_length=200)
    amount = models.CharField(max_length=40)
    first = models.BooleanField(help_text="False: the key had been seen, nothing was paid again.")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("idempotency_key",), condition=Q(first=True), name="examples_refund_once_per_key"
            ),
        )

    def __str__(self) -> str:
        return f"{self.amount} for {self.order_id}"


class MigratedRecord(models.Model):
    """A Unicode character, copied out of the standard library; `touched` counts the copies."""

    pk = models.CompositePrimaryKey("run_id", "number")
    run_id = models.UUIDField()
    number = models.PositiveIntegerField(help_text="1 for the first record.")
    codepoint = models.PositiveIntegerField()
    name = models.CharField(max_length=120)
    category = models.CharField(max_length=2)
    touched = models.PositiveIntegerField(default=1)

    class Meta:
        db_table = "examples_migrated_record"

    def __str__(self) -> str:
        return self.name
