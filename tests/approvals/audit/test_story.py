"""Who chose what, from beginning to end, also after it expired.

gravitational/teleport#68308, apache/airflow#53683, hhurz/tableExport.jquery.plugin#230: requests vanished when they
expired, nobody could say who had chosen what, and a cell of the export started a program.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals.audit.exporting import Format, export
from approvals.errors import NotEligible
from approvals.services.sweeping import sweep
from runs.models import Agent
from tests.approvals.scenes import cast, opened

pytestmark = pytest.mark.django_db(transaction=True)


def exported(as_format: Format) -> str:
    file = io.BytesIO()
    export(file, as_format=as_format, actor="system")
    return file.getvalue().decode()


@pytest.fixture
def story(
    agent: Agent, person: Callable[..., User], move_clock: Callable[[timedelta], None]
) -> tuple[dict[str, User], list[str]]:
    """One approval edited and settled, one forbidden attempt on another, which then expires; gives people and ids."""
    people = {"ada": person("ada"), "owner": person("owner")}
    agent.owners.add(people["owner"])
    edited = opened(agent, args={"amount": -5, "note": "=1+1"})
    cast(edited, people["ada"], "edit", args='{"amount":-4.50,"note":"=1+1"}', message="\t@SUM(1)")
    expired = opened(agent, expires_in=timedelta(hours=1))
    with pytest.raises(NotEligible):
        cast(expired, people["owner"])
    move_clock(timedelta(hours=2))
    sweep()
    return people, [str(edited.pk), str(expired.pk)]


def test_json_tells_it_exactly(story: tuple[dict[str, User], list[str]]) -> None:
    people, (edited, expired) = story
    events: list[dict[str, Any]] = [json.loads(line, parse_float=str) for line in exported(Format.JSONL).splitlines()]
    told = {(event["type"], event["chain"]): event for event in events if "chain" in event}
    edit = told["approval.edited", f"approval:{edited}"]
    assert edit["actor"] == f"person:{people['ada'].pk}"
    assert edit["body"]["args_before"] == '{"amount":-5,"note":"=1+1"}'
    assert edit["body"]["args"] == '{"amount":-4.50,"note":"=1+1"}'
    assert told["approval.settled", f"approval:{edited}"]["body"]["outcome"] == "edited"
    assert told["attempt.refused", f"approval:{expired}"]["actor"] == f"person:{people['owner'].pk}"
    assert told["approval.expired", f"approval:{expired}"]["actor"] == "system"
    assert {datetime.fromisoformat(event["at"]).tzinfo for event in told.values()} == {UTC}


def test_a_spreadsheet_tells_it_and_runs_nothing(story: tuple[dict[str, User], list[str]]) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(Format.CSV), newline="")))
    edit = next(row for row in rows if row["type"] == "approval.edited")
    assert (edit["actor_name"], edit["args.amount"], edit["args.note"]) == ("ada", "-4.50", "'=1+1")
    assert json.loads(edit["args_before"])["amount"] == -5
    asked = next(row for row in rows if row["type"] == "approval.requested")
    assert asked["args.amount"] == "-5"
    vote = next(row for row in rows if row["type"] == "vote.cast")
    assert vote["message"] == "'\\t@SUM(1)"
