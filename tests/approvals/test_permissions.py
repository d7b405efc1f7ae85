"""Who gets what through which door: docs/permissions.md has the table, and every cell of it is tried here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.urls import URLResolver, get_resolver

from approvals.models import Approval
from runs.models import Agent, Membership, Team
from runs.services.agents import issue_key
from tests.approvals.doors import BEFORE, STATE, Row, Scene, body, nothing, shown
from tests.approvals.scenes import in_group, policy
from tests.support.api import PASSWORD, as_agent, suspension
from tests.support.processes import ROOT

pytestmark = pytest.mark.django_db

PAGE = (ROOT / "docs" / "permissions.md").read_text()


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
PUBLIC = frozenset({"livez", "readyz", "api-schema", "login", "logout", "to-own-password"})
ARGUMENTS = {"<int:seq>": "0", "<str:name>": "paid", "<str:text>": "{link}"}
KEY_OF = re.compile(r"<\w+:(\w+)_id>")


@pytest.fixture
def scene(team: Team, agent: Agent, person: Callable[..., User]) -> Scene:
    money = policy(agent, "Money", ("finance", 1), risk="low")
    owner = person("owner")
    agent.owners.add(owner)
    elsewhere = Team.objects.create(name="Elsewhere")
    stranger, guest = (User.objects.create_user(name, password=PASSWORD) for name in ("stranger", "guest"))
    for outsider in (stranger, guest):
        roles = ["reviewer", "operator", "auditor", "admin"]
        Membership.objects.create(user=outsider, team=elsewhere, roles=roles)
    people = {name: person(name, name) for name in ("reviewer", "operator", "auditor", "admin")}
    person("deputy", "operator")
    people |= {"owner": owner, "stranger": stranger, "guest": in_group(guest, "finance")}
    people["superuser"] = User.objects.create_superuser("root", password=PASSWORD)
    asked = suspension(args={"order": "A-7"})
    asked["snapshot"] |= {"state": {"note": STATE}, "history": [{"role": "user", "content": STATE}]}
    response = as_agent(agent).post("/suspensions", asked)
    assert response.status_code == 201, response.content
    agents = {"agent": agent, "another agent": Agent.objects.create(team=team, name="other")}
    places = {"team": team.pk, "policy": money.pk, "reviewer": people["reviewer"].pk, "person": people["reviewer"].pk}
    places |= {"agent": str(agent.pk), "key": issue_key(agent=agent).key.pk}
    return Scene(agent, Approval.objects.get(), people, agents, places)


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
    assert set(cells) <= {"yes", "empty", "sign in", "400", "403", "404", "409"}
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
            yield KEY_OF.sub(r"{\1}", address)


def answer(row: Row, actor: str, scene: Scene) -> str:
    """What the table calls it: `yes`, `empty` (a page without it), `sign in`, or the status of the refusal."""
    address = row.address.format(run=scene.run.pk, approval=scene.approval.pk, **scene.places)
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
