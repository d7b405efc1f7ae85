"""What the run had said and stored when it stopped to ask."""

from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from approvals.models import Approval
from checkpoints.codec import to_jsonable
from checkpoints.errors import CheckpointError
from checkpoints.models import Checkpoint
from checkpoints.queries import history_page
from checkpoints.store import load
from runs.bodies import draft_place, opened
from runs.models import Draft
from runs.presentation.history import HistoryItem, shown
from runs.presentation.values import pretty

ITEMS_SHOWN = 20


@dataclass(frozen=True)
class RunSoFar:
    """The newest items of the history (`history_before` came earlier) and the state; or `why_not`."""

    history: list[HistoryItem] = field(default_factory=list)
    history_before: int = 0
    history_length: int = 0
    state: str = ""
    state_size: int = 0
    why_not: str = ""

    @property
    def is_shown(self) -> bool:
        return not self.why_not


def run_so_far(approval: Approval, *, readable: bool) -> RunSoFar:
    """`readable`: whether the viewer may read the run's snapshots at all."""
    if not readable:
        return RunSoFar(why_not="You may decide about this action; the run's history and state are for its own team.")
    try:
        return _read(approval)
    except CheckpointError as error:
        return RunSoFar(why_not=f"The run's snapshot cannot be shown: {error}.")


def _read(approval: Approval) -> RunSoFar:
    seq = (
        Checkpoint.objects.filter(run_id=approval.run_id, turn=approval.turn)
        .order_by("seq")
        .values_list("seq", flat=True)
        .first()
    )
    if seq is None:
        return RunSoFar(why_not="The snapshot of that moment is not kept any more.")
    with connection.cursor() as cursor:
        snapshot, _ = load(cursor, run_id=approval.run_id, seq=seq, history=False)
    draft = _draft(approval, seq) if approval.is_open else {}
    added = list(draft.get("history", ()))
    length = snapshot.history_length + len(added)
    first = max(0, snapshot.history_length - max(0, ITEMS_SHOWN - len(added)))
    saved = history_page(run_id=approval.run_id, first=first, count=snapshot.history_length - first)
    items = shown([*saved, *added], first)[-ITEMS_SHOWN:]
    state = {name: value for name, value in snapshot.state.items() if name not in draft.get("removed", ())}
    state |= draft.get("state", {})
    return RunSoFar(
        history=items,
        history_before=length - len(items),
        history_length=length,
        state=pretty(to_jsonable(state)),
        state_size=len(state),
    )


def _draft(approval: Approval, seq: int) -> dict[str, Any]:
    """What had changed since the checkpoint when the run stopped; resuming never loads it."""
    body = Draft.objects.filter(run=approval.run_id, seq=seq).values_list("body", flat=True).first()
    return {} if body is None else opened(body, draft_place(approval.run_id, seq), what="draft")
