"""Which builds of the code are at work, and what they can run."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now


class Build(models.Model):
    """A build seen at work. `supports` holds `workflow/schema` pairs.

    `since` is when it appeared, anew after each absence: of two builds at work the one that was deployed last is newer,
    a rollback to an old one too.
    """

    name = models.CharField(max_length=40, primary_key=True)
    supports = ArrayField(models.CharField(max_length=100))
    seen_at = models.DateTimeField()
    since = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name
