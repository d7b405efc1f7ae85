"""What the page of one run shows: how it ended, what happened, and its history."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.utils.safestring import SafeString

from checkpoints.codec import to_jsonable
from checkpoints.errors import CheckpointError
from checkpoints.queries import history_page
from checkpoints.store import load
from checkpoints.store.blobs import Place
from runs.bodies import input_place, opened, result_place
from runs.models import Run
from runs.presentation.history import ITEMS, HistoryItem, shown
from runs.presentation.text import visible
from runs.presentation.values import pretty
from runs.states import PostState, StepState
from runs.timeline import Entry, timeline

ENTRIES = 60


@dataclass(frozen=True)
class Ending:
    """`input`, and what the run completed with; None where there is nothing."""

    input: SafeString | None = None
    result: SafeString | None = None


@dataclass(frozen=True, slots=True)
class Happening:
    at: datetime
    mark: str
    title: str
    name: SafeString
    text: str


@dataclass(frozen=True)
class HistorySlice:
    items: list[HistoryItem]
    first: int
    length: int
    earlier: int | None
    later: int | None


def ending(run: Run) -> Ending:
    if run.erased_at is not None:
        return Ending()
    return Ending(
        input=_shown(run.input, input_place(run.pk), "input"),
        result=None if run.result is None else _shown(run.result, result_place(run.pk), "result"),
    )


def happenings(run: Run, *, before: datetime | None) -> tuple[list[Happening], datetime | None]:
    """What happened, newest first, and from when to go on."""
    entries, following = timeline(run, before=before, limit=ENTRIES)
    return [_happening(entry) for entry in entries], following


def history_slice(run: Run, first: int) -> HistorySlice:
    """At most `ITEMS` items of the history from index `first` on. Raises CheckpointError."""
    with connection.cursor() as cursor:
        snapshot, _ = load(cursor, run_id=run.pk, history=False)
    length = snapshot.history_length
    items = history_page(run_id=run.pk, first=first, count=ITEMS) if first < length else []
    return HistorySlice(
        items=shown(items, first),
        first=first,
        length=length,
        earlier=max(0, first - ITEMS) if first else None,
        later=first + ITEMS if first + ITEMS < length else None,
    )


def _shown(body: bytes | memoryview, place: Place, what: str) -> SafeString:
    try:
        return pretty(to_jsonable(opened(body, place, what=what)))
    except CheckpointError as error:
        return visible(f"cannot be shown: {error}")


STEPS = {
    StepState.INTENT: ("running", "Started"),
    StepState.DONE: ("approved", "Did"),
    StepState.FAILED: ("failed", "Failed"),
    StepState.NOT_PERFORMED: ("cancelled", "Did not happen:"),
}
POSTS = {
    PostState.PENDING: ("queued", "Is to tell its agent:"),
    PostState.DELIVERED: ("completed", "Told its agent:"),
    PostState.SUPERSEDED: ("cancelled", "Left to the next to tell its agent:"),
    PostState.GIVEN_UP: ("failed", "Gave up telling its agent:"),
}


def _tries(attempts: int, error: str) -> str:
    if error:
        return f"after {attempts} attempt{'' if attempts == 1 else 's'}: {error}"
    return f"at attempt {attempts}" if attempts > 1 else ""


def _happening(entry: Entry) -> Happening:
    facts = entry.facts
    phase = f"phase {facts['phase']}" if facts.get("phase") else ""
    match entry.kind:
        case "checkpoint":
            mark, title, more = "completed", "Saved checkpoint", [phase, f"{facts['size']:,} bytes"]
        case "step":
            mark, title = STEPS[StepState(facts["state"])]
            more = [f"{facts['tool']} ({facts['effect']})", phase]
        case "gate":
            mark, title = "fermata", "Asked" if facts["kind"] == "approval" else f"Waited for a {facts['kind']}:"
            more = [phase, "" if facts["answered_at"] else "not answered yet"]
        case "event":
            mark, title, more = "responded", "Was told", []
        case "webhook":
            mark, title = POSTS[PostState(facts["state"])]
            if facts["state"] == PostState.PENDING and facts["last_error"]:
                mark, title = "warning", "Cannot tell its agent yet:"
            more = [_tries(facts["attempts"], facts["last_error"])]
        case _:
            mark, title, more = ("queued" if entry.what == "created" else entry.what), "The run was", []
    return Happening(entry.at, mark, title, visible(entry.what, one_line=True), ", ".join(filter(None, more)))
