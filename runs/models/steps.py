"""What a turn recorded: steps (calls with an effect), late evidence, gates and outside events."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from runs.models.runs import Run
from runs.models.soundness import sound
from runs.states import GateKind, StepState


class Step(models.Model):
    """One recorded call. `INTENT` with no outcome and no living owner is *in doubt*."""

    pk = models.CompositePrimaryKey("run_id", "turn", "key")
    # No constraint: every insert selects from the run's locked head, which has one; checking it again, with a key-share
    # lock on the run, was a sixth of the server's work for a step.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps", db_index=False, db_constraint=False)
    turn = models.IntegerField()
    key = models.CharField(max_length=200)
    ordinal = models.IntegerField(help_text="The order of recording within the turn.")
    phase = models.CharField(max_length=80)
    tool = models.CharField(max_length=128)
    effect = models.CharField(max_length=5)
    args_hash = models.BinaryField(max_length=32)
    state = models.CharField(max_length=13, choices=StepState.choices)
    generation = models.SmallIntegerField(default=0)
    grant_id = models.UUIDField(null=True, blank=True)
    epoch = models.BigIntegerField()
    build = models.CharField(max_length=40)
    started_at = models.DateTimeField(db_default=Now())
    deadline_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.BinaryField(null=True, blank=True, help_text="Result or failure, encoded.")

    class Meta:
        indexes = (
            models.Index(fields=("started_at",), condition=Q(state=StepState.INTENT), name="runs_step_open_intents"),
        )
        constraints = (sound("runs_step", "state", Q(outcome__isnull=False)),)

    def __str__(self) -> str:
        return f"{self.run_id}/{self.turn}/{self.key} {self.state}"


class StepEvidence(models.Model):
    """A receipt that a worker held when it found that it had lost the run. Insert-only."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="evidence")
    turn = models.PositiveIntegerField()
    key = models.CharField(max_length=200)
    epoch = models.BigIntegerField()
    at = models.DateTimeField(db_default=Now())
    outcome = models.BinaryField()

    class Meta:
        db_table = "runs_step_evidence"

    def __str__(self) -> str:
        return f"evidence for {self.run_id}/{self.turn}/{self.key}"


class Gate(models.Model):
    """A question that a turn asked and, once given, its answer: `answer` is set once and never changed.

    A gate asked again (its grant lapsed, its proposal changed) raises `generation` and clears the answer, which
    only the run's owner does, under the run's lock.
    """

    pk = models.CompositePrimaryKey("run_id", "turn", "key")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="gates", db_index=False)
    turn = models.IntegerField()
    key = models.CharField(max_length=200)
    ordinal = models.IntegerField()
    phase = models.CharField(max_length=80)
    kind = models.CharField(max_length=8, choices=GateKind.choices)
    question_hash = models.BinaryField(max_length=32)
    generation = models.SmallIntegerField(default=0)
    superseded = models.SmallIntegerField(default=0)
    opened_at = models.DateTimeField(db_default=Now())
    wake_at = models.DateTimeField(null=True, blank=True, help_text="Of a timer.")
    answer = models.BinaryField(null=True, blank=True, help_text="Encoded.")
    answered_at = models.DateTimeField(null=True, blank=True)
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (sound("runs_gate", "kind", Q(answer__isnull=False), "answered_at", "delivered_at"),)

    def __str__(self) -> str:
        return f"{self.run_id}/{self.turn}/{self.key}"


class Draft(models.Model):
    """What the state had become when the run stopped at a gate, for the reviewer's eyes. Resuming never loads it.

    The body holds only what differs from the checkpoint that the phase started from.
    """

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="draft")
    seq = models.PositiveIntegerField(help_text="The checkpoint that it differs from.")
    body = models.BinaryField()

    def __str__(self) -> str:
        return f"draft of {self.run_id} at {self.seq}"


class OutsideEvent(models.Model):
    """Something that the outside told a run; it may come before the run waits for it. One per name."""

    pk = models.CompositePrimaryKey("run_id", "name")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events", db_index=False)
    name = models.CharField(max_length=120)
    payload = models.BinaryField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "runs_event"

    def __str__(self) -> str:
        return f"{self.name} for {self.run_id}"
