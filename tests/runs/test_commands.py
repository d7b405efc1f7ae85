"""`create_agent` and `create_person`, as scripts use them."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import override_settings

from runs.models import Membership, Team
from tests.support.api import Caller, as_person

pytestmark = pytest.mark.django_db(transaction=True)


def made(*arguments: str) -> Any:
    output = StringIO()
    call_command(*arguments, "--json", stdout=output)
    return json.loads(output.getvalue())


def test_an_agents_key_works() -> None:
    agent = made("create_agent", "refunds")
    assert set(agent) == {"id", "name", "key"}
    assert Caller(f"Bearer {agent['key']}").get("/runs").status_code == 200


def test_an_agent_can_have_less() -> None:
    agent = made("create_agent", "refunds", "--scope", "runs:read")
    assert Caller(f"Bearer {agent['key']}").get("/approvals").status_code == 403


def test_a_name_is_used_once_in_a_team() -> None:
    made("create_agent", "refunds")
    with pytest.raises(CommandError, match="already has an agent named 'refunds'"):
        call_command("create_agent", "refunds")


def test_a_person_is_a_reviewer_of_the_default_team() -> None:
    made("create_person", "ada", "--password", "pw")
    assert Membership.objects.values_list("user__username", "team__name", "roles").get() == (
        "ada",
        "Default",
        ["reviewer"],
    )
    assert as_person(User.objects.get(), "pw").get("/approvals").status_code == 200


def test_a_person_is_what_they_are_said_to_be() -> None:
    arguments = [
        "--password",
        "pw",
        "--role",
        "operator",
        "--role",
        "auditor",
        "--group",
        "finance",
        "--group",
        "legal",
        "--superuser",
    ]
    person = made("create_person", "ada", *arguments)
    assert person == {
        "id": person["id"],
        "name": "ada",
        "roles": ["operator", "auditor"],
        "groups": ["finance", "legal"],
    }
    user = User.objects.get()
    assert (user.is_superuser, set(user.groups.values_list("name", flat=True))) == (True, {"finance", "legal"})


def test_a_team_is_made_when_it_is_named() -> None:
    made("create_person", "ada", "--password", "pw", "--team", "Night shift")
    made("create_agent", "refunds", "--team", "Night shift")
    assert Team.objects.get(name="Night shift").agents.get().name == "refunds"


@pytest.mark.parametrize(
    ("name", "role", "complaint"),
    [("ada", "king", "no role king"), ("a b", "reviewer", "valid username"), ("", "reviewer", "blank")],
)
def test_wrong_input_is_one_line(name: str, role: str, complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint) as error:
        call_command("create_person", name, "--password", "pw", "--role", role)
    assert "\n" not in str(error.value)
    assert not User.objects.exists()


@override_settings(PRODUCTION=True)
def test_weak_passwords_are_refused_in_production() -> None:
    with pytest.raises(CommandError, match="too common"):
        call_command("create_person", "ada", "--password", "password1234")
