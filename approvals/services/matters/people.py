"""Who is in a team or group, and who gets a new password."""

from functools import cached_property

from django.contrib.auth.models import Group, User

from approvals.policies.guarded import GroupDraft, MembershipDraft, ResetDraft
from approvals.queries.guarded import DECIDING, teams_deciding_by, teams_relying_on
from approvals.services.matters.base import Matter
from runs.models import Credential, Membership, Team
from runs.principals import Person
from runs.services.passwords import open_link
from runs.services.people import change_group, set_roles


class GroupMatter(Matter):
    """It guards high risk where the group decides about it."""

    @cached_property
    def draft(self) -> GroupDraft:
        return GroupDraft.from_text(self.change.body)

    def lock(self) -> None:
        Group.objects.select_for_update(no_key=True).filter(name=self.draft.group).first()

    def base(self) -> str:
        return " ".join(map(str, sorted(self._members())))

    def starts_from_now(self) -> bool:
        members = self._members()
        return members.isdisjoint(self.draft.add) and members.issuperset(self.draft.remove)

    def teams(self) -> frozenset[int]:
        return teams_deciding_by(self.draft.group)

    def subjects(self) -> frozenset[int]:
        return frozenset([*self.draft.add, *self.draft.remove])

    def apply(self, by: User) -> None:
        told = sorted(self.teams()) or [self.change.team_id]
        change_group(name=self.draft.group, add=self.draft.add, remove=self.draft.remove, teams=told, by=by)

    def _members(self) -> set[int]:
        return set(User.objects.filter(groups__name=self.draft.group).values_list("pk", flat=True))


class MembershipMatter(Matter):
    """It guards high risk where the person begins or ceases to vote, or to confirm changes."""

    @cached_property
    def draft(self) -> MembershipDraft:
        return MembershipDraft.from_text(self.change.body)

    def base(self) -> str:
        memberships = Membership.objects.filter(user=self.draft.person, team=self.change.team_id)
        return " ".join(sorted(memberships.values_list("roles", flat=True).first() or ()))

    def starts_from_now(self) -> bool:
        return self.base() == " ".join(sorted(self.draft.was))

    def teams(self) -> frozenset[int]:
        changed = {*self.draft.roles} ^ {*self.draft.was}
        return frozenset([self.change.team_id] if changed & DECIDING else [])

    def subjects(self) -> frozenset[int]:
        return frozenset([self.draft.person])

    def apply(self, by: User) -> None:
        person, team = User.objects.get(pk=self.draft.person), Team.objects.get(pk=self.change.team_id)
        set_roles(person=person, team=team, roles=self.draft.roles, by=by)


class ResetLinkMatter(Matter):
    """It guards high risk where the person has a part in deciding about it."""

    @cached_property
    def draft(self) -> ResetDraft:
        return ResetDraft.from_text(self.change.body)

    @cached_property
    def person(self) -> User:
        return User.objects.get(pk=self.draft.person)

    def lock(self) -> None:
        User.objects.select_for_update(no_key=True).get(pk=self.draft.person)

    def base(self) -> str:
        """Whoever has set a new password meanwhile needs no link."""
        credential = Credential.objects.filter(person=self.person).first()
        return f"{self.person.is_active} {credential.set_at.isoformat() if credential else ''}"

    def teams(self) -> frozenset[int]:
        return teams_relying_on(self.person)

    def subjects(self) -> frozenset[int]:
        return frozenset([self.person.pk])

    def of_site(self) -> bool:
        return self.person.is_superuser

    def apply(self, by: User) -> None:
        open_link(person=self.person, digest=bytes.fromhex(self.draft.digest), actor=Person(by).actor)
