"""Who decides about a change that takes two, and why somebody may not: asked once, for services and pages."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User

from approvals.models import RuleChange
from runs.models import Membership, Role, Team

NOT_ADMINISTRATOR = "Only an administrator of the team can change its rules."


@dataclass(frozen=True)
class Confirmers:
    """Who may put one change in force, at one moment. People and teams are ids.

    `teams`: of each team that it concerns, the active administrators. `site`: the active superusers, who count as
    administering all of them; by being one they confirm and turn down, and propose nothing. `subjects`: whom it is
    about.
    """

    proposer: int
    subjects: frozenset[int]
    teams: dict[int, frozenset[int]]
    site: frozenset[int]

    def takes_part(self, person: int) -> bool:
        """Whether the person may take it back or turn it down."""
        if any(person in admins for admins in self.teams.values()):
            return True
        return person in self.site and person != self.proposer and person not in self.subjects

    def others_than(self, person: int) -> frozenset[int]:
        """The others who administer something of it: where there is one, nobody is alone.

        Whom it is about is one of them, or an only administrator could take a superuser's account over alone.
        """
        return self.site.union(*self.teams.values()) - {person}

    def why_not(self, person: int) -> str:
        """Why the person may not confirm it as the second one, as a sentence to them; empty when they may."""
        if not self.takes_part(person):
            return NOT_ADMINISTRATOR
        if person == self.proposer:
            return f"It was you who proposed it: {self._who(person)} must confirm it."
        if person in self.subjects:
            return f"It is about you: {self._who(person)} must confirm it."
        return self._why_not_together(person)

    def why_not_alone(self, person: int) -> str:
        """Why the person may not put it in force as the only one, as a sentence to them; empty when they may."""
        if person != self.proposer or self.others_than(person):
            return "Another administrator must confirm it."
        return self._why_not_together(person)

    def _why_not_together(self, person: int) -> str:
        """Whoever proposed it and whoever confirms it must, the two together, administer every team that it touches."""
        missing = self._missing(person)
        if not missing:
            return ""
        return f"It touches {_names(missing)} too: an administrator from there or a superuser must confirm it."

    def _missing(self, person: int) -> list[int]:
        if person in self.site:
            return []
        return [team for team, admins in self.teams.items() if admins.isdisjoint({person, self.proposer})]

    def _who(self, person: int) -> str:
        missing = self._missing(person)
        return f"an administrator of {_names(missing)} or a superuser" if missing else "another administrator"


def confirmers(change: RuleChange, *, subjects: Iterable[int]) -> Confirmers:
    """Read who may decide about `change` now; `subjects`: whom it is about."""
    return Confirmers(
        proposer=change.proposed_by_id,
        subjects=frozenset(subjects),
        teams=administrators_of(concerned(change)),
        site=frozenset(User.objects.filter(is_superuser=True, is_active=True).values_list("pk", flat=True)),
    )


def administrators_of(teams: Iterable[int]) -> dict[int, frozenset[int]]:
    """For each team its active administrators."""
    found: dict[int, set[int]] = {team: set() for team in teams}
    admins = Membership.objects.filter(team__in=found, roles__contains=[Role.ADMIN], user__is_active=True)
    for team, user in admins.values_list("team_id", "user_id"):
        found[team].add(user)
    return {team: frozenset(users) for team, users in found.items()}


def concerned(change: RuleChange) -> list[int]:
    """The teams whose administrators see the change and take part, in the order in which their chains are locked."""
    return sorted({change.team_id, *change.teams}, key=str)


def _names(teams: Iterable[int]) -> str:
    return ", ".join(Team.objects.filter(pk__in=list(teams)).order_by("name").values_list("name", flat=True))
