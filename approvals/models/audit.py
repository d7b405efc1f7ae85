"""The audit trail's tables. Triggers refuse every change but those named here; docs/audit.md has the construction."""

from django.conf import settings
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Cast

from runs.models import Team

# What most runs that ask have: so common that looking along the trail finds them, and they stand in no index by type.
EVERYDAY = (
    "approval.held",
    "approval.requested",
    "approval.settled",
    "approval.viewed",
    "grant.outcome",
    "grant.spent",
    "run.finished",
    "run.started",
    "vote.cast",
)
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class AuditEvent(models.Model):
    """One link of a chain: only ever inserted. `hash` covers every other hashed column and the `prev` link.

    `type` has no choices here, so that a new kind of event needs no migration: `approvals.audit.append` checks it.
    """

    chain = models.CharField(max_length=60, help_text="approval:UUID, run:UUID, team:ID or site.")
    n = models.PositiveBigIntegerField(help_text="The place in the chain, from 1.")
    at = models.DateTimeField()
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, db_index=False, db_constraint=False, related_name="+"
    )
    actor = models.CharField(max_length=120, help_text="person:ID, agent:UUID, worker or system.")
    type = models.CharField(max_length=40)
    body_commit = models.BinaryField(max_length=32, help_text="SHA-256 of salt and body.")
    prev = models.BinaryField(max_length=32, help_text="The hash of the link before; zeros for the first.")
    hash = models.BinaryField(max_length=32)
    subject = models.GeneratedField(
        expression=Cast(
            Func(F("chain"), Value("^(?:approval|run):(.*)$"), function="substring", output_field=models.TextField()),
            models.UUIDField(),
        ),
        output_field=models.UUIDField(null=True),
        db_persist=True,
        help_text="The approval or run that the chain belongs to.",
    )

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(fields=("team", "-at", "-id"), name="approvals_audit_newest"),
            models.Index(
                fields=("actor", "-at", "-id"),
                condition=Q(actor__startswith="person:"),
                name="approvals_audit_by_person",
            ),
            models.Index(
                fields=("team", "type", "-at", "-id"),
                condition=~Q(type__in=EVERYDAY),
                name="approvals_audit_by_type",
            ),
            models.Index(fields=("subject",), name="approvals_audit_subject"),
        )
        constraints = (
            models.UniqueConstraint(fields=("chain", "n"), name="approvals_audit_place"),
            models.CheckConstraint(condition=Q(n__gte=1), name="approvals_audit_from_one"),
            models.CheckConstraint(
                condition=Q(chain__regex=f"^((approval|run):{UUID}|team:[0-9]+|site)$"),
                name="approvals_audit_chain_known",
            ),
            models.CheckConstraint(
                condition=Q(actor__regex=f"^(person:[0-9]+|agent:{UUID}|worker|system)$"),
                name="approvals_audit_actor_known",
            ),
        )

    def __str__(self) -> str:
        return f"{self.chain} {self.n} {self.type}"


class AuditBody(models.Model):
    """The readable part of an event, canonical JSON text. Deleted, with its salt, only by an erasure that says so."""

    event = models.OneToOneField(AuditEvent, on_delete=models.PROTECT, primary_key=True, related_name="content")
    salt = models.BinaryField(max_length=16)
    body = models.TextField()
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        db_index=False,
        related_name="+",
        help_text="Whose personal data it holds.",
    )

    class Meta:
        indexes = (
            models.Index(fields=("person",), condition=Q(person__isnull=False), name="approvals_audit_personal"),
        )

    def __str__(self) -> str:
        return f"body of {self.event_id}"


class AuditErasure(models.Model):
    """The body of `event` was erased, and the `audit.erased` event `by` lists it. Only ever inserted."""

    event = models.OneToOneField(AuditEvent, on_delete=models.PROTECT, primary_key=True, related_name="erasure")
    by = models.ForeignKey(AuditEvent, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return f"erasure of {self.event_id}"


class AuditLeaf(models.Model):
    """The event's number among all sealed events, from 1 without gaps. Null until sealed, then never changed."""

    event = models.OneToOneField(AuditEvent, on_delete=models.PROTECT, primary_key=True, related_name="leaf")
    no = models.PositiveBigIntegerField(null=True, unique=True)

    class Meta:
        indexes = (models.Index(fields=("event",), condition=Q(no__isnull=True), name="approvals_audit_unsealed"),)
        constraints = (models.CheckConstraint(condition=Q(no__gte=1), name="approvals_auditleaf_from_one"),)

    def __str__(self) -> str:
        return f"leaf {self.no}"


class AuditSeal(models.Model):
    """A signature over the Merkle root of the leaves `first` to `last`, linked to the seal before. Only inserted."""

    no = models.PositiveBigIntegerField(primary_key=True)
    prev = models.BinaryField(max_length=32, help_text="SHA-256 of the seal before; zeros for the first.")
    first = models.PositiveBigIntegerField(unique=True)
    last = models.PositiveBigIntegerField(unique=True)
    root = models.BinaryField(max_length=32)
    at = models.DateTimeField()
    key = models.BinaryField(max_length=32, help_text="The Ed25519 public key that `signature` is by.")
    signature = models.BinaryField(max_length=64)

    class Meta:
        ordering = ("no",)
        constraints = (
            models.CheckConstraint(condition=Q(no__gte=1), name="approvals_auditseal_from_one"),
            models.CheckConstraint(
                condition=Q(first__gte=1, last__gte=F("first")), name="approvals_auditseal_not_empty"
            ),
        )

    def __str__(self) -> str:
        return f"seal {self.no}: {self.first} to {self.last}"


class AuditAnchored(models.Model):
    """Up to which seal an anchor elsewhere has been sent. A mark for the sender, and no proof of anything."""

    kind = models.CharField(max_length=8, primary_key=True)
    no = models.PositiveBigIntegerField(default=0)
    at = models.DateTimeField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True, help_text="Somebody is sending.")

    class Meta:
        db_table = "approvals_audit_anchored"

    def __str__(self) -> str:
        return f"{self.kind}: up to seal {self.no}"
