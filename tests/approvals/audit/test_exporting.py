import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from approvals.audit.exporting import Exported, Format, export
from approvals.audit.queries import Filters
from approvals.models import AuditEvent
from runs.models import Team
from tests.approvals.audit.conftest import subject

pytestmark = pytest.mark.django_db

ODD = {
    "tool": '=HYPERLINK("http://evil.example")',
    "message": "\t@SUM(1)",
    "args": '{"amount":-5,"exact":0.1000,"name":"pa\\u202eypal"}',
    "args_before": '{"amount":-4}',
    "outcome": "edited",
    "revision": 2,
}


def jsonl(**fields: Any) -> list[dict[str, Any]]:
    file = io.BytesIO()
    export(file, as_format=Format.JSONL, actor="system", **fields)
    return [json.loads(line) for line in file.getvalue().decode().splitlines()]


def sheet(**fields: Any) -> list[dict[str, str]]:
    file = io.BytesIO()
    export(file, as_format=Format.CSV, actor="system", **fields)
    return list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))


def chains(lines: Sequence[dict[str, Any]]) -> list[str]:
    return [line["chain"] for line in lines if "chain" in line]


def test_jsonl_is_whole_and_exact(write: Callable[..., str]) -> None:
    chain = write(body=ODD, actor="worker")
    header, seal, event, _, end = jsonl()
    assert header["complete"] is True
    assert (seal["seal"]["first"], seal["seal"]["last"]) == (1, 2)
    assert (event["chain"], event["n"], event["actor"], event["type"]) == (chain, 1, "worker", "vote.cast")
    assert event["body"] == ODD
    assert datetime.fromisoformat(event["at"]) == AuditEvent.objects.get(chain=chain).at
    assert event["at"].endswith("Z")
    assert end["end"]["events"] == 2


def test_an_export_is_itself_an_event_and_is_in_the_export(write: Callable[..., str]) -> None:
    write()
    last = jsonl()[-2]
    assert (last["type"], last["actor"]) == ("audit.exported", "system")
    assert last["body"] == {"filters": {}, "format": "jsonl"}


def test_a_filtered_export_says_what_it_proves(write: Callable[..., str]) -> None:
    chain = write()
    write()
    lines = jsonl(filters=Filters(approval=subject(chain)))
    assert lines[0]["complete"] is False
    assert "not proved that none is left out" in lines[0]["proves"]
    assert lines[0]["filters"] == {"approval": str(subject(chain))}
    assert chains(lines) == [chain]


def test_an_export_of_teams_leaves_out_the_others_and_is_told_to_each(write: Callable[..., str], team: Team) -> None:
    other, third = Team.objects.create(name="Other"), Team.objects.create(name="Third")
    mine, theirs = write(), write(team_id=other.pk)
    write(team_id=third.pk)
    told = [f"team:{team.pk}", f"team:{other.pk}"]
    assert chains(jsonl(teams=[other.pk, team.pk])) == [mine, theirs, *told]
    assert AuditEvent.objects.filter(type="audit.exported", chain="site").count() == 0


def test_csv_is_neutral_and_its_numbers_are_numbers(write: Callable[..., str]) -> None:
    write(body=ODD)
    row = sheet()[0]
    assert row["tool"] == '\'=HYPERLINK("http://evil.example")'
    assert row["message"] == "'\\t@SUM(1)"
    assert row["args.amount"] == "-5"
    assert row["args.exact"] == "0.1000"
    assert row["args.name"] == "pa\\u202eypal"
    assert json.loads(row["args_before"]) == {"amount": -4}
    assert json.loads(row["body"]) == ODD
    assert (row["outcome"], row["revision"], row["actor"], row["type"]) == ("edited", "2", "system", "vote.cast")
    assert datetime.fromisoformat(row["at"]).tzinfo == UTC


def test_csv_has_no_cell_that_a_spreadsheet_would_run(write: Callable[..., str]) -> None:
    for start in ("=", "+", "-", "@", "\t", "\r", "\n", " =", "\u00a0="):
        write(body={"message": f"{start}cmd|' /C calc'!A0", "args": json.dumps({f"{start}1": f"{start}1+1"})})
    for row in sheet():
        for cell in (*row, *row.values()):
            assert cell[:1] not in set("=+-@\t\r\n ") or cell.lstrip("-").isdigit(), cell


def test_csv_names_people(write: Callable[..., str], person: Callable[..., Any]) -> None:
    ada = person("ada")
    write(actor=f"person:{ada.pk}")
    assert sheet()[0]["actor_name"] == "ada"


def test_csv_of_too_many_arguments_has_them_in_one_column(write: Callable[..., str]) -> None:
    args = {f"a{n}": n for n in range(300)}
    write(body={"args": json.dumps(args)})
    row = sheet()[0]
    assert not [name for name in row if name.startswith("args.")]
    assert json.loads(row["args"]) == args


def test_it_says_what_was_written(write: Callable[..., str]) -> None:
    write(2)
    for as_format, seals in ((Format.JSONL, 1), (Format.CSV, 0)):
        file = io.BytesIO()
        filters = Filters(type="vote.cast")
        assert export(file, as_format=as_format, actor="system", filters=filters) == Exported(2, seals, complete=False)
