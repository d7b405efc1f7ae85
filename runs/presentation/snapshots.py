"""A snapshot as the JSON that the API and a download have."""

from collections.abc import Callable
from typing import Any

from checkpoints import codec
from checkpoints.models import Reason
from checkpoints.store import Snapshot


def jsonable(snapshot: Snapshot) -> Callable[[Any], Any]:
    """What turns the values of this snapshot into JSON: what an agent posted is that already, and would be changed."""
    return _as_posted if snapshot.reason == Reason.EXTERNAL else codec.to_jsonable


def document(snapshot: Snapshot, *, mask: bool = False) -> dict[str, Any]:
    """The fields of `GET runs/{id}/snapshot`. `mask` puts `[redacted: rule]` for each credential, as pages do."""
    convert = jsonable(snapshot)

    def show(value: Any) -> Any:
        return convert(codec.redact(value) if mask else value)

    return {
        "seq": snapshot.seq,
        "workflow": snapshot.workflow,
        "schema": snapshot.schema,
        "phase": snapshot.phase,
        "turn": snapshot.turn,
        "reason": snapshot.reason,
        "at": snapshot.at,
        "digest": snapshot.digest.hex(),
        "state": show(snapshot.state),
        "history": [show(item) for item in snapshot.history or ()],
        "position": show(snapshot.position),
        "pending": show(snapshot.pending),
    }


def _as_posted(value: Any) -> Any:
    return value
