"""The trail as a spreadsheet, for people. It proves nothing: only the JSONL export can be checked."""

import csv
import io
from typing import IO, Any

from django.contrib.auth.models import User
from django.db.models import QuerySet

from approvals.audit.cells import cell
from approvals.audit.records import Record, exact, records, utc
from approvals.models import AuditEvent
from runs.models import Agent, Team
from runs.strictjson import dumps

PLACE = ("leaf", "chain", "n", "at", "team", "actor", "actor_name", "type")
FACTS = ("approval", "run", "agent", "tool", "revision", "outcome", "message", "args_before", "args")
MOST_ARGUMENTS = 200  # a column each; an export with more has them in `args` only


def write_csv(file: IO[bytes], events: QuerySet[AuditEvent]) -> int:
    """Write a header and a line for each of `events`, in their order; returns how many there were. Reads them twice.

    Columns: where the event stands, the facts that events have in common, the whole body as JSON, the hash, and then
    one column `args.NAME` for each argument of the exported actions.
    """
    arguments = _argument_names(events)
    names = _Names()
    lines = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    sheet = csv.writer(lines, quoting=csv.QUOTE_NONNUMERIC)
    sheet.writerow(map(cell, [*PLACE, *FACTS, "body", "hash", *(f"args.{name}" for name in arguments)]))
    written = 0
    for record in records(events):
        written += 1
        link, body = record.link, _body(record)
        args = _args(body)
        row = [
            record.leaf,
            link.chain,
            link.n,
            utc(link.at),
            names.team(link.team),
            link.actor,
            names.actor(link.actor),
            link.type,
            *(_text(body.get(fact)) for fact in FACTS),
            record.content.body if record.content else "erased",
            record.hash.hex(),
            *(_text(args.get(name)) for name in arguments),
        ]
        sheet.writerow(map(cell, row))
    lines.detach()
    return written


def _argument_names(events: QuerySet[AuditEvent]) -> list[str]:
    names: dict[str, None] = {}
    for record in records(events):
        names |= dict.fromkeys(_args(_body(record)))
        if len(names) > MOST_ARGUMENTS:
            return []
    return sorted(names)


def _body(record: Record) -> dict[str, Any]:
    return exact(record.content.body) if record.content else {}


def _args(body: dict[str, Any]) -> dict[str, Any]:
    args = exact(body["args"]) if body.get("args") else {}
    return args if isinstance(args, dict) else {}


def _text(value: Any) -> Any:
    return dumps(value) if isinstance(value, dict | list) else value


class _Names:
    """What people call those that the trail knows by their ids."""

    def __init__(self) -> None:
        self._teams = dict(Team.objects.values_list("pk", "name"))
        self._actors = {f"person:{key}": name for key, name in User.objects.values_list("pk", "username")}
        self._actors |= {f"agent:{key}": name for key, name in Agent.objects.values_list("pk", "name")}

    def team(self, key: int | None) -> str:
        return self._teams.get(key, "") if key else ""

    def actor(self, actor: str) -> str:
        return self._actors.get(actor, "")
