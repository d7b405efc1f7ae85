"""An approval and everything that people do to it."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from approvals.models.automatic import AutomaticRule
from approvals.models.indexes import INDEXES
from approvals.states import OPEN, ApprovalKind, ApprovalStatus, Risk, Verdict
from runs.models import Agent, Run, Team

PERSON = settings.AUTH_USER_MODEL


class Approval(models.Model):
    """A request for a human decision on one exact action.

    `args` is canonical JSON text, never JSONB. `action` and `review` are hex SHA-256 digests of the current revision.
    Settled exactly when `status` is not open; only conditional updates under the run's lock change `status`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="approvals", editable=False, db_index=False)
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="approvals", editable=False, db_index=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="approvals", editable=False, db_index=False)
    kind = models.CharField(max_length=8, choices=ApprovalKind.choices, default=ApprovalKind.ACTION)
    turn = models.PositiveIntegerField()
    key = models.CharField(max_length=200)
    generation = models.PositiveSmallIntegerField(default=0, help_text="Of the gate, or of the step in doubt.")
    status = models.CharField(max_length=10, choices=ApprovalStatus.choices, default=ApprovalStatus.PENDING)
    tool = models.CharField(max_length=128)
    tool_version = models.CharField(max_length=64, blank=True)
    target = models.CharField(max_length=120, blank=True)
    revision = models.PositiveSmallIntegerField(default=1)
    args = models.TextField()
    action = models.CharField(max_length=64)
    review = models.CharField(max_length=64)
    snapshot_digest = models.CharField(max_length=64)
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    risk = models.CharField(max_length=6, choices=Risk.choices)
    allowed = ArrayField(models.CharField(max_length=8, choices=Verdict.choices))
    args_schema = models.TextField(help_text="JSON Schema text for edits; '{}' accepts any object.")
    asked = models.TextField(help_text="What the agent wished for beyond the policies, as canonical JSON text.")
    requirements = models.TextField(help_text="The effective policy, as canonical JSON text.")
    pools = ArrayField(models.CharField(max_length=160), help_text="Whose people may vote: team, group:NAME.")
    wanted = ArrayField(
        models.CharField(max_length=160), help_text="Of whom the agent asked for somebody: group:NAME, person:ID."
    )
    grant_life = models.DurationField()
    closes_others = models.BooleanField(
        db_default=False, default=False, help_text="Its gate takes the first answer: this one's closes the others."
    )
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True, blank=True)
    held_until = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    safe_at = models.DateTimeField(
        null=True, blank=True, help_text="In doubt: from when on it is safe to say that the call did not happen."
    )
    voted_by = ArrayField(
        models.BigIntegerField(), default=list, blank=True, help_text="Whose seats votes on the current revision fill."
    )
    announced_at = models.DateTimeField(null=True, blank=True, help_text="When its reviewers were last told of it.")
    reminded_at = models.DateTimeField(null=True, blank=True)
    automatic = models.ForeignKey(
        AutomaticRule,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        help_text="The rule that will look at it first.",
    )
    claimed_by = models.ForeignKey(PERSON, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    claimed_until = models.DateTimeField(null=True, blank=True)
    supersedes = models.OneToOneField("self", on_delete=models.PROTECT, null=True, blank=True, related_name="successor")

    class Meta:
        ordering = (F("expires_at").asc(nulls_last=True), "created_at", "id")
        indexes = INDEXES
        constraints = (
            models.UniqueConstraint(
                fields=("run", "turn", "key", "kind"),
                condition=Q(status__in=sorted(OPEN)),
                name="approvals_one_open_per_gate",
            ),
            models.CheckConstraint(
                condition=Q(status__in=ApprovalStatus.values), name="approvals_approval_status_known"
            ),
            models.CheckConstraint(condition=Q(risk__in=Risk.values), name="approvals_approval_risk_known"),
            models.CheckConstraint(condition=Q(kind__in=ApprovalKind.values), name="approvals_approval_kind_known"),
            models.CheckConstraint(
                condition=Q(status__in=sorted(OPEN), settled_at__isnull=True)
                | (~Q(status__in=sorted(OPEN)) & Q(settled_at__isnull=False)),
                name="approvals_approval_settled_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(status=ApprovalStatus.HELD, held_until__isnull=False)
                | (~Q(status=ApprovalStatus.HELD) & Q(held_until__isnull=True)),
                name="approvals_approval_held_has_an_end",
            ),
            models.CheckConstraint(
                condition=Q(allowed__contained_by=Verdict.values) & Q(allowed__contains=[Verdict.REJECT]),
                name="approvals_approval_can_be_rejected",
            ),
            models.CheckConstraint(
                condition=Q(claimed_by__isnull=True) | Q(claimed_until__isnull=False),
                name="approvals_approval_claim_ends",
            ),
        )

    def __str__(self) -> str:
        return self.title

    @property
    def is_open(self) -> bool:
        return self.status in OPEN


class Revision(models.Model):
    """What was proposed (number 1) and each edit of it. Never changed."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="revisions", db_index=False)
    number = models.PositiveSmallIntegerField()
    args = models.TextField()
    action = models.CharField(max_length=64)
    review = models.CharField(max_length=64)
    requirements = models.TextField(help_text="What it took to decide this revision when it came to be.")
    diff = models.TextField(blank=True, help_text="RFC 6902 patch from the revision before, as JSON text.")
    author = models.ForeignKey(PERSON, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("approval", "number"), name="approvals_revision_numbered"),
            models.CheckConstraint(
                condition=Q(number=1, author__isnull=True) | Q(number__gt=1, author__isnull=False),
                name="approvals_revision_edit_has_an_author",
            ),
        )

    def __str__(self) -> str:
        return f"revision {self.number} of {self.approval_id}"


class Vote(models.Model):
    """One person's verdict on one revision; the newest that is not void counts."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="votes")
    revision = models.PositiveSmallIntegerField()
    voter = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    on_behalf_of = models.ForeignKey(PERSON, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    verdict = models.CharField(max_length=7, choices=Verdict.choices)
    message = models.TextField(blank=True)
    review = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())
    void = models.BooleanField(default=False)
    by_token = models.BooleanField(default=False, db_default=False, help_text="A personal token voted.")

    class Meta:
        ordering = ("at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("approval", "revision", "voter"), condition=Q(void=False), name="approvals_vote_one_per_person"
            ),
            models.CheckConstraint(condition=Q(verdict__in=Verdict.values), name="approvals_vote_verdict_known"),
        )

    def __str__(self) -> str:
        return f"{self.verdict} by {self.voter_id}"


class Decision(models.Model):
    """The settled outcome. One per approval, never changed."""

    approval = models.OneToOneField(Approval, on_delete=models.PROTECT, primary_key=True, related_name="decision")
    outcome = models.CharField(max_length=10, choices=ApprovalStatus.choices)
    revision = models.PositiveSmallIntegerField()
    action = models.CharField(max_length=64)
    args = models.TextField()
    message = models.TextField(blank=True)
    decided_by = models.ForeignKey(
        PERSON, on_delete=models.PROTECT, null=True, blank=True, related_name="decisions", help_text="Null: a rule."
    )
    policies = models.TextField(help_text="The policy versions that applied, as canonical JSON text.")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(outcome__in=ApprovalStatus.values) & ~Q(outcome__in=sorted(OPEN)),
                name="approvals_decision_is_settled",
            ),
        )

    def __str__(self) -> str:
        return f"{self.outcome} for {self.approval_id}"


class CardView(models.Model):
    """Who has seen the details of which revision: one row per person, revision and quarter of an hour."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="views", db_index=False)
    revision = models.PositiveSmallIntegerField()
    viewer = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    quarter = models.DateTimeField(help_text="The start of the quarter of an hour.")
    review = models.CharField(max_length=64)
    recorded = models.BooleanField(default=False, help_text="Whether the audit trail has it: the day after.")

    class Meta:
        indexes = (
            models.Index(fields=("quarter",), condition=Q(recorded=False), name="approvals_cardview_unrecorded"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=("approval", "revision", "viewer", "quarter"), name="approvals_cardview_one_per_quarter"
            ),
        )

    def __str__(self) -> str:
        return f"{self.viewer_id} saw {self.approval_id}"
