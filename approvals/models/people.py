"""Who stands in for whom, and who has just proved again who they are."""

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from approvals.models.approvals import Approval
from approvals.states import Verdict

PERSON = settings.AUTH_USER_MODEL


class Delegation(models.Model):
    """From `starts_at` until `ends_at`, `taker` may vote for `giver`. One level only; it ends early by `revoked_at`.

    Another administrator, or a superuser, must confirm it before it counts for high risk; and before it counts at all,
    where an administrator gave it for somebody else.
    """

    COUNTS = Q(confirmed_by__isnull=False) | Q(created_by=F("giver"))

    giver = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="delegations_given")
    taker = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="delegations_taken")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    created_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    confirmed_by = models.ForeignKey(PERSON, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-starts_at", "-id")
        constraints = (
            models.CheckConstraint(condition=~Q(giver=F("taker")), name="approvals_delegation_to_another"),
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="approvals_delegation_ends_later"),
            models.CheckConstraint(
                condition=Q(confirmed_by__isnull=True) | (~Q(confirmed_by=F("giver")) & ~Q(confirmed_by=F("taker"))),
                name="approvals_delegation_confirmed_by_another",
            ),
        )

    def __str__(self) -> str:
        return f"{self.taker_id} for {self.giver_id}"


class PoolEntry(models.Model):
    """Since when a person has been in a group. Kept by a trigger on the table of members, whoever writes there."""

    pk = models.CompositePrimaryKey("user_id", "group_id")
    user = models.ForeignKey(PERSON, on_delete=models.CASCADE, related_name="+")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField()

    class Meta:
        db_table = "approvals_pool_entry"

    def __str__(self) -> str:
        return f"{self.user_id} in {self.group_id}"


class StepUp(models.Model):
    """A person proved again who they are, for one approval, one review digest and one verdict. Used once."""

    approval = models.ForeignKey(Approval, on_delete=models.PROTECT, related_name="step_ups")
    person = models.ForeignKey(PERSON, on_delete=models.PROTECT, related_name="+")
    review = models.CharField(max_length=64)
    verdict = models.CharField(max_length=7, choices=Verdict.choices)
    at = models.DateTimeField(db_default=Now())
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "approvals_step_up"
        indexes = (
            models.Index(
                fields=("approval", "person"), condition=Q(used_at__isnull=True), name="approvals_step_up_unused"
            ),
        )

    def __str__(self) -> str:
        return f"{self.person_id} confirmed for {self.approval_id}"
