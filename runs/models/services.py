"""Signs of life."""

from django.db import models
from django.db.models.functions import Now


class ServiceBeat(models.Model):
    """When a kind of process (`worker`, `beat`) last said that it is there: one row each, however many there are."""

    name = models.CharField(max_length=20, primary_key=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_service_beat"

    def __str__(self) -> str:
        return f"{self.name} at {self.at}"
