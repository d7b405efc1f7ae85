"""Three append-only tables. `checkpoints.store` writes the rows in SQL; the ORM reads their plain columns.

A run's history is stored once, in chunks; its state by top-level part, and a part that did not change is
not written again. Columns stand in the order that PostgreSQL packs without padding. There are no check constraints:
each row is covered by a digest or bound to its place, and checked whenever it is read.
"""

from django.db import models
from django.db.models.functions import Now


class Reason(models.TextChoices):
    """Why a checkpoint was taken."""

    START = "start"
    PHASE = "phase"
    GATE = "gate"
    EXTERNAL = "external"
    FORK = "fork"
    END = "end"


class Checkpoint(models.Model):
    """One saved snapshot: `body` has position, pending and history digest; `manifest` names the parts."""

    pk = models.CompositePrimaryKey("run_id", "seq")
    at = models.DateTimeField(db_default=Now())
    epoch = models.BigIntegerField()
    size = models.BigIntegerField(help_text="Bytes of state, history, position and pending before compression.")
    seq = models.IntegerField()
    turn = models.IntegerField()
    schema = models.IntegerField()
    history_length = models.IntegerField()
    run_id = models.UUIDField()
    digest = models.BinaryField(help_text="SHA-256 over everything in the snapshot but `at`.")
    workflow = models.TextField()
    phase = models.TextField()
    reason = models.TextField(choices=Reason)
    manifest = models.BinaryField(help_text="msgpack: state part name to the seq that introduced it.")
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.run_id} at {self.seq}"


class StatePart(models.Model):
    """One top-level entry of a run's state, as the checkpoint `introduced_seq` and those after it have it."""

    pk = models.CompositePrimaryKey("run_id", "name", "introduced_seq")
    introduced_seq = models.IntegerField()
    run_id = models.UUIDField()
    name = models.TextField()
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.name} of {self.run_id} since {self.introduced_seq}"


class HistoryChunk(models.Model):
    """`count` history items from index `first` on, written by checkpoint `seq`."""

    pk = models.CompositePrimaryKey("run_id", "first")
    first = models.IntegerField()
    count = models.IntegerField()
    seq = models.IntegerField()
    run_id = models.UUIDField()
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"history of {self.run_id} from {self.first}"
