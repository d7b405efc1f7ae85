"""The OpenAPI document: valid, without warnings, and true of what the API answers."""

from __future__ import annotations

import io
from typing import Any
from uuid import UUID

import pytest
import schemathesis
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, settings
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from runs.models import Agent
from tests.support.api import Caller, as_agent, suspension

pytestmark = pytest.mark.django_db(transaction=True)

DOCUMENT = schemathesis.openapi.from_wsgi("/api/v1/schema/", get_wsgi_application())
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


def test_the_document_is_valid_and_complete() -> None:
    document = io.StringIO()
    call_command("spectacular", validate=True, fail_on_warn=True, stdout=document)
    assert "/api/v1/suspensions" in document.getvalue()


def test_it_is_served_to_anybody() -> None:
    answer = Caller(None).get("/schema/")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("application/vnd.oai.openapi")


@pytest.fixture
def places(agent: Agent) -> dict[str, str]:
    """Something real for the parameters of paths."""
    parked = as_agent(agent).post("/suspensions", suspension()).json()
    return {"run_id": parked["run"]["id"], "approval_id": parked["approvals"][0]["id"]}


@DOCUMENT.parametrize()
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_as_documented(case: Any, agent: Agent, places: dict[str, str]) -> None:
    for name, place in places.items():
        if name in case.path_parameters and _is_uuid(case.path_parameters[name]):
            case.path_parameters[name] = place
    case.call_and_validate(checks=CHECKS, headers={"Authorization": as_agent(agent).authorization})


def _is_uuid(text: Any) -> bool:
    try:
        return bool(UUID(text))
    except (ValueError, AttributeError):
        return False
