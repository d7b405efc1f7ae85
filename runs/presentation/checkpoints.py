"""What the pages of a run's checkpoints show: one of them, two of them side by side, and the list."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils.safestring import SafeString

from checkpoints.models import Reason
from checkpoints.queries import Change, Difference, compare, history_page, list_checkpoints
from checkpoints.store import Snapshot, load
from runs.models import Run
from runs.presentation.history import ITEMS, HistoryItem, shown
from runs.presentation.snapshots import jsonable
from runs.presentation.text import visible
from runs.presentation.values import pretty

CHANGES = 200  # at most, of each of state, position and pending calls
SAVED = {
    Reason.START: "when the run started",
    Reason.PHASE: "when a phase ended",
    Reason.GATE: "when it stopped to ask",
    Reason.EXTERNAL: "as its agent posted it",
    Reason.FORK: "when it was forked",
    Reason.END: "when the run ended",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One checkpoint in a list. `size` is in bytes, `saved` says why it was taken."""

    seq: int
    at: datetime
    saved: str
    phase: str
    turn: int
    items: int
    size: int


@dataclass(frozen=True, slots=True)
class ValueChange:
    place: SafeString
    before: SafeString | None
    after: SafeString | None


@dataclass(frozen=True)
class Changes:
    """What changed in one part of a snapshot; `more` counts what is not in `shown`."""

    name: str
    same: str
    shown: list[ValueChange]
    more: int


@dataclass(frozen=True)
class Comparison:
    """Two checkpoints, the earlier one first. `added` has the first of the items added, `more` counts the rest."""

    before: Row
    after: Row
    state: Changes
    position: Changes
    pending: Changes
    added: list[HistoryItem]
    more: int

    @property
    def added_count(self) -> int:
        return len(self.added) + self.more

    @property
    def following(self) -> int:
        """The index of the first item that is not in `added`."""
        return self.before.items + len(self.added)


@dataclass(frozen=True)
class CheckpointPage:
    """`since` is what changed since the checkpoint before; None for the first that is kept."""

    row: Row
    digest: str
    state: SafeString
    position: SafeString
    pending: SafeString
    since: Comparison | None
    history: list[HistoryItem]


def checkpoint_rows(run_id: UUID, *, before: int | None, count: int) -> tuple[list[Row], int | None]:
    """At most `count` checkpoints below `before`, newest first, and the `before` with which to go on."""
    found = list_checkpoints(run_id=run_id, before=before, limit=count + 1)
    rows = [Row(c.seq, c.at, SAVED[Reason(c.reason)], c.phase, c.turn, c.history_length, c.size) for c in found[:count]]
    return rows, rows[-1].seq if len(found) > count else None


def checkpoint_page(run: Run, seq: int, *, since: int | None) -> CheckpointPage:
    """Checkpoint `seq`, and what changed `since` an earlier one. Raises what `checkpoints.store.load` raises."""
    if since is None:
        with connection.cursor() as cursor:
            snapshot, _ = load(cursor, run_id=run.pk, seq=seq, history=False)
        comparison, items = None, history_page(run_id=run.pk, first=0, count=min(snapshot.history_length, ITEMS))
    else:
        difference = compare(run_id=run.pk, a=since, b=seq, items=ITEMS)
        snapshot, comparison, items = difference.after, _comparison(difference), []
    show = jsonable(snapshot)
    return CheckpointPage(
        row=_row(snapshot),
        digest=snapshot.digest.hex(),
        state=pretty(show(snapshot.state)),
        position=pretty(show(snapshot.position)),
        pending=pretty(show(snapshot.pending)),
        since=comparison,
        history=shown(items, 0),
    )


def comparison_page(run: Run, *, before: int, after: int) -> Comparison:
    """Raises what `checkpoints.store.load` raises."""
    return _comparison(compare(run_id=run.pk, a=before, b=after, items=ITEMS))


def _comparison(difference: Difference) -> Comparison:
    before, after = difference.before, difference.after
    show = (jsonable(before), jsonable(after))
    return Comparison(
        before=_row(before),
        after=_row(after),
        state=_changes("State", "The state is the same.", difference.state, show),
        position=_changes("Position", "The position is the same.", difference.position, show),
        pending=_changes("Pending calls", "The pending calls are the same.", difference.pending, show),
        added=shown(difference.history_added, before.history_length),
        more=difference.added - len(difference.history_added),
    )


def _row(snapshot: Snapshot) -> Row:
    saved = SAVED[Reason(snapshot.reason)]
    return Row(snapshot.seq, snapshot.at, saved, snapshot.phase, snapshot.turn, snapshot.history_length, snapshot.size)


def _changes(name: str, same: str, changes: tuple[Change, ...], show: tuple[Any, Any]) -> Changes:
    return Changes(name, same, list(_shown(changes[:CHANGES], *show)), max(0, len(changes) - CHANGES))


def _shown(changes: Iterable[Change], show_before: Any, show_after: Any) -> Iterable[ValueChange]:
    for change in changes:
        yield ValueChange(
            visible(change.path, one_line=True),
            None if change.kind == "added" else pretty(show_before(change.before), name=change.name),
            None if change.kind == "removed" else pretty(show_after(change.after), name=change.name),
        )
