"""What the engine asks of this floor: see `runs.hooks.Hooks`, which this implements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from approvals import audit
from approvals.queries.asked import unperformable
from approvals.services.closing import close_for_run, closing
from approvals.services.doubt import open_in_doubt
from approvals.services.erasing import erase_of_run
from runs.hooks import Closing, Cursor


class RunHooks:
    def record(
        self, cursor: Cursor, *, run_id: UUID, team_id: int, type: str, actor: str, body: dict[str, Any]
    ) -> None:
        audit.append_all(cursor, [_event(run_id, team_id, type, actor, body)])

    def record_change(
        self, cursor: Cursor, *, teams: Collection[int], type: str, actor: str, body: dict[str, Any]
    ) -> None:
        audit.append_to_teams(cursor, teams or [None], type=type, actor=actor, body=body)

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
        kind = audit.EventType(type)
        close_for_run(cursor, run_id=run_id, team_id=team_id, reason=reason, type=kind, actor=actor, body=body)

    def closing(self, *, run_id: UUID, reason: str, type: str, actor: str, body: dict[str, Any]) -> Closing:
        return closing(run_id=run_id, reason=reason, type=audit.EventType(type), actor=actor, body=body)

    def erase(self, cursor: Cursor, *, run_id: UUID, actor: str, approvals: bool) -> int:
        return erase_of_run(cursor, run_id=run_id, actor=actor, approvals=approvals)

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
        open_in_doubt(
            cursor,
            run_id=run_id,
            turn=turn,
            key=key,
            tool=tool,
            arguments=arguments,
            generation=generation,
            started_at=started_at,
            safe_at=safe_at,
            approval_id=approval_id,
        )

    def unperformable(self, cursor: Cursor, *, run_ids: Sequence[UUID]) -> list[tuple[UUID, str]]:
        return unperformable(cursor, run_ids=run_ids)


def _event(run_id: UUID, team_id: int, type: str, actor: str, body: dict[str, Any]) -> audit.Event:
    return audit.Event(
        chain=f"run:{run_id}",
        type=audit.EventType(type),
        actor=actor,
        team_id=team_id,
        body={"run": str(run_id), **body},
    )
