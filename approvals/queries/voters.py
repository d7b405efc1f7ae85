"""Who may decide about an approval, as people."""

from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import Q

from approvals import policies
from approvals.models import Approval, Delegation
from approvals.policies.requirements import TEAM
from runs.models import Membership, Role


def who_may_vote(approval: Approval, *, at: datetime) -> list[User]:
    """Everybody who may vote on the approval at the moment `at`, stand-ins included, by id."""
    requirements = policies.Requirements.from_text(approval.requirements)
    groups = [pool.removeprefix("group:") for pool in requirements.pools if pool.startswith("group:")]
    reviewers = Membership.objects.filter(team=approval.team_id, roles__contains=[Role.REVIEWER]).values("user")
    in_pools = Q(groups__name__in=groups) | (Q(pk__in=reviewers) if TEAM in requirements.pools else Q(pk__in=[]))
    seated = set(User.objects.filter(in_pools, is_active=True).values_list("pk", flat=True))
    stand_ins = Delegation.objects.filter(
        Delegation.COUNTS, giver__in=seated, starts_at__lte=at, ends_at__gt=at, revoked_at__isnull=True
    )
    people = seated | set(stand_ins.values_list("taker_id", flat=True))
    voters = policies.electorate(approval, requirements=requirements, people=people, at=at)
    return list(User.objects.filter(pk__in=[person for person in people if not voters.why_not(person)]).order_by("pk"))
