from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.audit import queries
from approvals.audit.queries import Filters
from approvals.models import Approval, AuditEvent
from runs.models import Agent, Membership, Team
from runs.principals import AgentPrincipal, Person
from tests.approvals.scenes import opened

pytestmark = pytest.mark.django_db


@pytest.fixture
def other(db: None) -> Team:
    return Team.objects.create(name="Other")


@pytest.fixture
def approval(agent: Agent) -> Approval:
    """An approval with its events: `approval.requested`, in a chain of its own."""
    return opened(agent)


def chains(events: Any) -> set[str]:
    return set(events.values_list("chain", flat=True))


def overseen(person: Person) -> set[str]:
    return {chain for part in queries.overseen_by(person) for chain in chains(part)}


def chain_of(approval: Approval) -> str:
    return f"approval:{approval.pk}"


def test_an_auditor_sees_everything_of_the_team_and_nothing_of_another(
    write: Callable[..., str], person: Callable[..., User], team: Team, other: Team
) -> None:
    write(team_id=other.pk)
    write(chain="site", team_id=None)
    mine = {write(), write(chain=f"team:{team.pk}")}
    auditor = Person(person("ada", "auditor"))
    assert overseen(auditor) == chains(queries.visible_to(auditor)) == mine


def test_a_reviewer_sees_the_chains_of_visible_approvals_and_runs(
    write: Callable[..., str], person: Callable[..., User], approval: Approval, team: Team
) -> None:
    write(chain=f"team:{team.pk}")
    write()
    run = write(chain=f"run:{approval.run_id}", type="run.started")
    reviewer = Person(person("ada", "reviewer"))
    assert chains(queries.visible_to(reviewer)) == {chain_of(approval), run}
    assert not queries.oversees(reviewer)
    assert not overseen(reviewer)


def test_a_stranger_sees_nothing(write: Callable[..., str], approval: Approval, other: Team) -> None:
    write()
    stranger = User.objects.create_user("eve")
    Membership.objects.create(user=stranger, team=other, roles=["reviewer", "auditor", "admin", "operator"])
    assert chains(queries.visible_to(Person(stranger))) == set()


def test_an_agent_sees_its_own_timeline(write: Callable[..., str], approval: Approval, team: Team) -> None:
    write()
    agent_key: Any = None
    mine = AgentPrincipal(approval.agent, agent_key)
    assert chains(queries.visible_to(mine)) == {chain_of(approval)}
    another = AgentPrincipal(Agent.objects.create(team=team, name="another"), agent_key)
    assert chains(queries.visible_to(another)) == set()


def test_an_administrator_sees_the_teams_configuration(
    write: Callable[..., str], person: Callable[..., User], team: Team
) -> None:
    write()
    settings = write(chain=f"team:{team.pk}", type="policy.changed")
    assert chains(queries.visible_to(Person(person("ada", "admin")))) == {settings}


def test_a_superuser_sees_what_belongs_to_no_team_and_no_content(write: Callable[..., str]) -> None:
    write()
    write(chain="site", team_id=None)
    root = User.objects.create_superuser("root")
    assert chains(queries.visible_to(Person(root))) == {"site"}


def test_each_filter_narrows(write: Callable[..., str], person: Callable[..., User], approval: Approval) -> None:
    ada = person("ada")
    run = write(chain=f"run:{approval.run_id}", type="run.started")
    vote = write(actor=f"person:{ada.pk}", body={"message": "Überweisung 100%"})
    about = write(person_id=ada.pk, type="vote.voided")
    asked = chain_of(approval)

    def found(**filters: Any) -> set[str]:
        return chains(queries.narrowed(AuditEvent.objects.all(), Filters(**filters)))

    assert found() == {asked, run, vote, about}
    assert found(person=ada.pk) == {vote, about}
    assert found(agent=approval.agent_id) == {asked, run}
    assert found(tool="REFUND") == {asked}
    assert found(type="vote.voided") == {about}
    assert found(approval=approval.pk) == {asked}
    assert found(run=approval.run_id) == {asked, run}
    assert found(text="Überweisung") == found(text="100%") == {vote}
    assert found(text="MESSAGE") == {vote}
    assert found(text="Überweisung", type="vote.voided") == set()
    assert found(team=approval.team_id) == {asked, run, vote, about}
    now = datetime.now(UTC)
    assert found(since=now + timedelta(minutes=1)) == found(until=now - timedelta(minutes=1)) == set()
    assert found(since=now - timedelta(minutes=1), until=now + timedelta(minutes=1)) == {asked, run, vote, about}
