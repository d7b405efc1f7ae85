"""Who belongs together, and what they may do there."""

from datetime import datetime

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q


class Role(models.TextChoices):
    REVIEWER = "reviewer"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    ADMIN = "admin"


class Team(models.Model):
    """A wall: agents, runs and approvals belong to one team and are visible only inside it."""

    name = models.CharField(max_length=80, unique=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's roles in a team.

    `since`: when they joined, or became a reviewer later; `admin_since`: when they became an administrator later.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="memberships")
    roles = ArrayField(models.CharField(max_length=16, choices=Role.choices))
    since = models.DateTimeField(auto_now_add=True)
    admin_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("user", "team"), name="runs_membership_one_per_team"),
            models.CheckConstraint(
                condition=Q(roles__contained_by=Role.values) & ~Q(roles=[]), name="runs_membership_roles_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.user} in {self.team}: {', '.join(self.roles)}"

    @property
    def administers_since(self) -> datetime:
        """Of an administrator."""
        return self.admin_since or self.since
