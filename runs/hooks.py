"""What `runs` asks of the floor above, through the one dotted path `settings.FERMATA_HOOKS`.

Every function that writes gets the cursor of the transaction that holds the run's lock, and uses plain SQL on it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Protocol, cast
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from checkpoints.store import Cte


class Cursor(Protocol):
    """What psycopg's cursors and Django's have in common."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, query: Any, params: Any = None, /) -> Any: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> Any: ...


@dataclass(frozen=True)
class Closing:
    """What else ends with a run, as part of the statement that ends it."""

    nothing_open: str  # a condition on `runs_head`: without it, `Hooks.run_ended` has more to do than this
    ctes: list[Cte]  # behind `fence` (run_id) and beside `ended` (team_id)
    result: str  # what the statement selects: a row whose first column is not 0, if the fence had one


class Hooks(Protocol):
    def record(
        self, cursor: Cursor, *, run_id: UUID, team_id: int, type: str, actor: str, body: dict[str, Any]
    ) -> None:
        """Write an event of the run's life into the audit trail."""

    def record_change(
        self, cursor: Cursor, *, teams: Collection[int], type: str, actor: str, body: dict[str, Any]
    ) -> None:
        """Write a change of the teams' agents, keys or people into the audit trail. No team: it belongs to none."""

    def run_ended(
        self,
        cursor: Cursor,
        *,
        run_id: UUID,
        team_id: int,
        reason: str,
        type: str,
        actor: str,
        body: dict[str, Any],
    ) -> None:
        """Close what is open for a run that ended (approvals, unspent grants) for `reason`, and write its end into the
        audit trail: the rest as for `record`."""

    def closing(self, *, run_id: UUID, reason: str, type: str, actor: str, body: dict[str, Any]) -> Closing:
        """`run_ended` without a transaction of its own."""

    def erase(self, cursor: Cursor, *, run_id: UUID, actor: str, approvals: bool) -> int:
        """Erase what the audit trail says about a run in words, and, with its `approvals`, what people were asked about
        it and decided. How much that was: 0 when it was done before."""

    def open_in_doubt(
        self,
        cursor: Cursor,
        *,
        run_id: UUID,
        turn: int,
        key: str,
        tool: str,
        arguments: dict[str, Any],
        generation: int,
        started_at: datetime,
        safe_at: datetime,
        approval_id: UUID | None,
    ) -> None:
        """Ask a human whether a call happened. Asking again about the same call changes nothing."""

    def unperformable(self, cursor: Cursor, *, run_ids: Sequence[UUID]) -> list[tuple[UUID, str]]:
        """The calls that humans were asked about in the runs' open turns and that this code would not perform as they
        were asked: the run, and a sentence that says why."""


@cache
def hooks() -> Hooks:
    return cast("Hooks", import_string(settings.FERMATA_HOOKS)())
