"""Which builds of the code are at work, and what they can run."""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Build(models.Model):
    """A build seen at work. `supports` holds `workflow/schema` pairs."""

    name = models.CharField(max_length=40, primary_key=True)
    supports = ArrayField(models.CharField(max_length=100))
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
