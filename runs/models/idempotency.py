"""First answers, kept so that a repeated request gets the same one."""

from django.db import models
from django.db.models.functions import Now

from runs.models.agents import Agent


class IdempotentRequest(models.Model):
    """The answer given to an agent's `Idempotency-Key`; inserted in the transaction that did the work."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request_hash = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField()
    body = models.TextField()
    at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        db_table = "runs_idempotent_request"
        constraints = (models.UniqueConstraint(fields=("agent", "key"), name="runs_idempotent_request_once"),)

    def __str__(self) -> str:
        return self.key
