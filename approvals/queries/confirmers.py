"""Who decides about what takes two, a change or a delegation, and why somebody may not: for services and pages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from approvals.models import Delegation, RuleChange
from approvals.policies.probation import Fresh, too_new
from approvals.queries.guarded import teams_lent_by
from runs.clock import database_now
from runs.models import Membership, Role, Team

NOT_ADMINISTRATOR = "Only an administrator of the team can change its rules."
SITE = "site"


@dataclass(frozen=True)
class Confirmers:
    """Who may put one change in force, at one moment. People and teams are ids.

    `teams`: of each team that it concerns, the active administrators. `site`: the active superusers, who count as
    administering all of them; by being one they confirm and turn down, and propose nothing. `subjects`: whom it is
    about. `fresh`: of each person the places (teams, or the site) in which they are too new to count. `of_site`:
    whether it gives somebody a superuser's account.
    """

    proposer: int
    subjects: frozenset[int]
    teams: Mapping[int, frozenset[int]]
    site: frozenset[int]
    fresh: Mapping[int, Mapping[str, Fresh]]
    of_site: bool = False

    def takes_part(self, person: int) -> bool:
        """Whether the person may take it back or turn it down."""
        if any(person in admins for admins in self.teams.values()):
            return True
        return person in self.site and person != self.proposer and person not in self.subjects

    def others_than(self, person: int) -> frozenset[int]:
        """The others who administer something of it: where there is one, nobody is alone.

        Whom it is about is one of them, or an only administrator could take a superuser's account over alone; and so is
        who is too new: it takes no more than waiting. docs/decisions/035 has the reasons.
        """
        return self.site.union(*self.teams.values()) - {person}

    def is_alone(self, person: int) -> bool:
        """Whether the person proposed it and there is nobody else."""
        return person == self.proposer and not self.others_than(person)

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
        if not self.takes_part(person):
            return NOT_ADMINISTRATOR
        if not self.is_alone(person):
            return "Another administrator must confirm it."
        return self._why_not_together(person)

    def _why_not_together(self, person: int) -> str:
        """Whoever proposed it and whoever confirms it must, the two together, administer every team that it touches,
        where they are not too new; and the second one something of it themselves: the site, if it gives that."""
        if self.of_site and person not in self.site:
            return "It is about a superuser's account: another superuser must confirm it."
        fresh, missing = self.fresh.get(person, {}), self._missing(person)
        places = {str(team) for team, admins in self.teams.items() if person in admins}
        places |= {SITE} if person in self.site else set()
        if not missing and not places <= fresh.keys():
            return ""
        helping = {str(team) for team in missing} or places
        if waiting := [fresh[place] for place in places & helping & fresh.keys()]:
            return str(min(waiting, key=lambda each: each.counts_from))
        return f"It touches {_names(missing)} too: an administrator from there or a superuser must confirm it."

    def _missing(self, person: int) -> list[int]:
        if person in self.site:  # for as long as there is the account, so no place of theirs is older
            return []
        pair = frozenset({person, self.proposer})
        return [
            team
            for team, admins in self.teams.items()
            if all(str(team) in self.fresh.get(each, {}) for each in pair & admins)
        ]

    def _who(self, person: int) -> str:
        missing = self._missing(person)
        return f"an administrator of {_names(missing)} or a superuser" if missing else "another administrator"


def confirmers(*, proposer: int, teams: Iterable[int], subjects: Iterable[int], of_site: bool = False) -> Confirmers:
    """Read who may decide now about what `proposer` proposed, what touches `teams`, and is about `subjects`."""
    admins = administrators_of(teams)
    site = dict(User.objects.filter(is_superuser=True, is_active=True).values_list("pk", "date_joined"))
    entries: dict[int, dict[str, datetime]] = {person: {SITE: joined} for person, joined in site.items()}
    for team, people in admins.items():
        for person, since in people.items():
            entries.setdefault(person, {})[str(team)] = since
    return Confirmers(
        proposer=proposer,
        subjects=frozenset(subjects),
        teams={team: frozenset(people) for team, people in admins.items()},
        site=frozenset(site),
        fresh=too_new(entries, database_now(), entered="You became an administrator").pools,
        of_site=of_site,
    )


def confirmers_of(given: Delegation) -> Confirmers:
    """The same for a delegation. It is about both, and touches what the giver decides about."""
    people = (given.giver_id, given.taker_id)
    return confirmers(proposer=given.created_by_id, teams=teams_lent_by(given.giver), subjects=people)


def administrators_of(teams: Iterable[int]) -> dict[int, dict[int, datetime]]:
    """For each team its active administrators, and since when they are."""
    found: dict[int, dict[int, datetime]] = {team: {} for team in teams}
    for each in Membership.objects.filter(team__in=found, roles__contains=[Role.ADMIN], user__is_active=True):
        found[each.team_id][each.user_id] = each.administers_since
    return found


def concerned(change: RuleChange) -> list[int]:
    """The teams whose administrators see the change and take part, in the order in which their chains are locked."""
    return sorted({change.team_id, *change.teams}, key=str)


def _names(teams: Iterable[int]) -> str:
    return ", ".join(Team.objects.filter(pk__in=list(teams)).order_by("name").values_list("name", flat=True))
