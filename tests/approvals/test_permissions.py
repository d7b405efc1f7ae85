"""Who gets what through which door: docs/permissions.md has the table, and every cell of it is tried here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import URLResolver, get_resolver

from approvals.models import Approval
from runs.models import Agent, Membership, Run, RunHead, Team
from runs.states import ResumeMode, RunStatus
from tests.approvals.scenes import HOLD, cast, in_doubt, in_group, policy
from tests.support.api import as_agent, suspension
from tests.support.processes import ROOT

pytestmark = pytest.mark.django_db

PAGE = (ROOT / "docs" / "permissions.md").read_text()
STATE = "only-the-snapshot-says-this"


@dataclass
class Scene:
    """One parked run with one open approval, and everybody who may knock."""

    agent: Agent
    approval: Approval
    people: dict[str, User]
    agents: dict[str, Agent] = field(default_factory=dict)

    @property
    def run(self) -> Run:
        return self.approval.run

    def knock(self, actor: str) -> Client:
        if actor in self.agents:
            return as_agent(self.agents[actor]).client
        client = Client()
        if actor in self.people:
            client.force_login(self.people[actor], backend="django.contrib.auth.backends.ModelBackend")
        return client


@dataclass(frozen=True)
class Row:
    """One line of the table: `METHOD address`, and what each actor gets."""

    what: str
    method: str
    address: str
    expected: dict[str, str]


def rows() -> list[Row]:
    found: list[Row] = []
    actors: list[str] = []
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| what"):
            actors = cells[2:]
        elif door := re.fullmatch(r"`(GET|POST) (\S+)`", cells[1] if len(cells) > 2 else ""):
            found.append(Row(cells[0], door[1], door[2], dict(zip(actors, cells[2:], strict=True))))
    return found


TABLE = rows()
DEEDS = [(row, actor) for row in TABLE if row.method == "POST" for actor, cell in row.expected.items() if cell == "yes"]
PUBLIC = frozenset({"livez", "readyz", "api-schema", "login", "logout"})
ARGUMENTS = {"<uuid:run_id>": "{run}", "<uuid:approval_id>": "{approval}", "<int:seq>": "0", "<str:name>": "paid"}


# --- what must have happened before, and what is posted ----------------------------------------------------------


def granted(scene: Scene) -> None:
    cast(scene.approval, scene.people["guest"])
    cast(scene.approval, scene.people["reviewer"])


def spent(scene: Scene) -> None:
    granted(scene)
    scene.knock("agent").post(f"/api/v1/approvals/{scene.approval.pk}/consume", b"{}", content_type="application/json")


def held(scene: Scene) -> None:
    cast(scene.approval, scene.people["guest"])
    cast(scene.approval, scene.people["reviewer"], hold=HOLD)


def doubted(scene: Scene) -> None:
    granted(scene)
    scene.approval = in_doubt(scene.approval)


def failed(scene: Scene) -> None:
    RunHead.objects.filter(run=scene.run).update(status=RunStatus.FAILED, reason="")
    Run.objects.filter(pk=scene.run.pk).update(resume_mode=ResumeMode.HOSTED)


def forkable(scene: Scene) -> None:
    RunHead.objects.filter(run=scene.run).update(workflow="refund-agent")


def queued(scene: Scene) -> None:
    RunHead.objects.filter(run=scene.run).update(status=RunStatus.QUEUED, reason="")


def nothing(scene: Scene) -> None:
    """The scene is enough as it is."""


BEFORE: dict[str, Callable[[Scene], None]] = {
    "undo a vote": held,
    "revoke a grant": granted,
    "spend a grant": granted,
    "report an outcome": spent,
    "answer a call in doubt": doubted,
    "retry a run": failed,
    "fork a run": forkable,
    "claim a run": queued,
    "finish a run": queued,
}


def body(row: Row, scene: Scene) -> dict[str, Any]:
    approval = scene.approval
    bodies: dict[str, dict[str, Any]] = {
        "vote": {"verdict": "approve", "review": approval.review},
        "vote over the API": {"type": "approve", "review": approval.review},
        "answer a call in doubt": {"verdict": "happened", "review": approval.review},
        "fork a run": {"checkpoint": 0},
        "park a run": suspension(),
        "report an outcome": {"status": "succeeded"},
        "tell a run": {"payload": {"paid": True}},
        "finish a run": {"result": "done"},
        "export the trail": {"format": "jsonl"},
    }
    return bodies.get(row.what, {})


def shown(what: str, scene: Scene) -> str:
    """What a page must hold to have shown it; nothing: its status says enough."""
    run, approval = str(scene.run.pk), str(scene.approval.pk)
    return {
        "find a run": run,
        "find an approval": approval,
        "hear of a run": run,
        "hear of an approval": approval,
        "read a run's timeline": "/checkpoints/0/",
        "read a snapshot": STATE,
        "read a history": STATE,
        "read the run so far on a card": STATE,
        "find the team's events": approval,
        "find a run's events": f"run:{run}",
        "find an approval's events": f"approval:{approval}",
        "export the trail": approval,
    }.get(what, "")


# --- the walk ----------------------------------------------------------------------------------------------------


@pytest.fixture
def scene(team: Team, agent: Agent, person: Callable[..., User]) -> Scene:
    policy(agent, "Money", ("finance", 1), risk="low")
    owner = person("owner")
    agent.owners.add(owner)
    elsewhere = Team.objects.create(name="Elsewhere")
    stranger, guest = User.objects.create_user("stranger"), User.objects.create_user("guest")
    for outsider in (stranger, guest):
        roles = ["reviewer", "operator", "auditor", "admin"]
        Membership.objects.create(user=outsider, team=elsewhere, roles=roles)
    people = {name: person(name, name) for name in ("reviewer", "operator", "auditor", "admin")}
    people |= {"owner": owner, "stranger": stranger, "guest": in_group(guest, "finance")}
    people["superuser"] = User.objects.create_superuser("root")
    asked = suspension(args={"order": "A-7"})
    asked["snapshot"] |= {"state": {"note": STATE}, "history": [{"role": "user", "content": STATE}]}
    response = as_agent(agent).post("/suspensions", asked)
    assert response.status_code == 201, response.content
    agents = {"agent": agent, "another agent": Agent.objects.create(team=team, name="other")}
    return Scene(agent, Approval.objects.get(), people, agents)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.what}: {row.method} {row.address}")
def test_reading_and_refusals(scene: Scene, row: Row) -> None:
    """Everybody at one door, one after the other: neither reading nor a refusal changes what the next one gets."""
    BEFORE.get(row.what, nothing)(scene)
    actors = [actor for actor, cell in row.expected.items() if row.method == "GET" or cell != "yes"]
    assert {actor: answer(row, actor, scene) for actor in actors} == {actor: row.expected[actor] for actor in actors}


@pytest.mark.parametrize(("row", "actor"), DEEDS, ids=lambda part: part if isinstance(part, str) else part.address)
def test_who_may_do_it(scene: Scene, row: Row, actor: str) -> None:
    BEFORE.get(row.what, nothing)(scene)
    assert answer(row, actor, scene) == "yes"


def test_the_table_is_whole(record_property: Callable[[str, object], None]) -> None:
    """No door is missing, and every cell is one of the words that the page explains."""
    cells = [cell for row in TABLE for cell in row.expected.values()]
    record_property("cells", len(cells))
    print(f"{len(TABLE)} doors, {len(cells)} cells")
    assert set(cells) <= {"yes", "empty", "sign in", "403", "404", "409"}
    assert {row.address.split("?")[0] for row in TABLE} >= set(addresses(get_resolver().url_patterns))


def addresses(patterns: list[Any], before: str = "/") -> Iterator[str]:
    """Every address of pages and API that is about somebody's data, as the table writes it."""
    for pattern in patterns:
        address = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            if pattern.namespace != "admin":
                yield from addresses(pattern.url_patterns, address)
        elif pattern.name not in PUBLIC and not address.startswith("/examples/"):
            for argument, value in ARGUMENTS.items():
                address = address.replace(argument, value)
            yield address


def answer(row: Row, actor: str, scene: Scene) -> str:
    """What the table calls it: `yes`, `empty` (a page without it), `sign in`, or the status of the refusal."""
    address = row.address.format(run=scene.run.pk, approval=scene.approval.pk, reviewer=scene.people["reviewer"].pk)
    client = scene.knock(actor)
    if row.method == "GET":
        response = client.get(address)
    elif address.startswith("/api/"):
        response = client.post(address, body(row, scene), content_type="application/json")
    else:
        response = client.post(address, body(row, scene))
    return said(response, shown(row.what, scene))


def said(response: HttpResponse, marker: str) -> str:
    if response.status_code == 401 or (response.status_code == 302 and "/login" in response["Location"]):
        return "sign in"
    if response.status_code >= 400:
        return str(response.status_code)
    text = b"".join(response) if response.streaming else response.content
    return "yes" if marker in text.decode() else "empty"
