"""Making a checkpoint fail."""

from uuid import UUID

from checkpoints.models import Checkpoint


def in_its_place(run_id: UUID) -> None:
    """A row where checkpoint 1 is to be written: that fails until this one is deleted."""
    other = Checkpoint.objects.get(run_id=run_id, seq=0)
    other.pk = (run_id, 1)
    other.save(force_insert=True)
