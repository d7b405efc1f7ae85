"""What LangGraph has and a run has not: threads with namespaces, and writes that wait for the next checkpoint.

The checkpoints are the store's own, under the thread's `run_id`: `phase` is LangGraph's checkpoint id, and `workflow`
the id of the LangGraph run that made it.
"""

from django.db import models


class Thread(models.Model):
    """One namespace of one thread, and the fence of all that is written to it."""

    run_id = models.UUIDField(primary_key=True)
    thread_id = models.TextField()
    namespace = models.TextField()
    head_seq = models.IntegerField(db_default=-1)
    version = models.BigIntegerField(db_default=0, help_text="Goes up with every write.")
    writer = models.TextField(db_default="", help_text="The reading that the last write followed.")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("thread_id", "namespace"), name="fermata_langgraph_thread_namespace"),
        )

    def __str__(self) -> str:
        return f"{self.thread_id} {self.namespace}".strip()


class PendingWrite(models.Model):
    """A task's write to a channel, made after a checkpoint and not yet in the next one."""

    pk = models.CompositePrimaryKey("run_id", "checkpoint_id", "task_id", "idx")
    idx = models.IntegerField(help_text="Negative for LangGraph's special channels.")
    run_id = models.UUIDField()
    checkpoint_id = models.TextField()
    task_id = models.TextField()
    task_path = models.TextField()
    channel = models.TextField()
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.channel} after {self.checkpoint_id}"
