"""What is kept of a run outside of its snapshots, sealed as those are: encrypted, if the deployment has a key.

A body is a value as `codec.encode` gives it, bound to the place that it stands at: elsewhere it is not accepted.
"""

from typing import Any
from uuid import UUID

from checkpoints import codec
from checkpoints.codec.encoding import pack
from checkpoints.store.blobs import Place, sealed_frame, unsealed_frame
from checkpoints.store.rotation import Sealed
from runs.states import GateKind


def input_place(run_id: UUID) -> Place:
    return Place(run_id, pack(["input", run_id.bytes]))


def result_place(run_id: UUID) -> Place:
    return Place(run_id, pack(["result", run_id.bytes]))


def outcome_place(run_id: UUID, turn: int, key: str) -> Place:
    """Of a step's outcome, and of the evidence for it."""
    return Place(run_id, pack(["outcome", run_id.bytes, turn, key]))


def answer_place(run_id: UUID, turn: int, key: str, kind: str) -> Place:
    """Of a gate's answer. An event's is its payload, wherever that stands; timers answer nothing, and all the same."""
    match kind:
        case GateKind.EVENT:
            return event_place(run_id, key)
        case GateKind.TIMER:
            return Place(run_id, pack(["timer", run_id.bytes, turn]))
        case _:
            return Place(run_id, pack(["answer", run_id.bytes, turn, key]))


def event_place(run_id: UUID, name: str) -> Place:
    return Place(run_id, pack(["event", run_id.bytes, name]))


def draft_place(run_id: UUID, seq: int) -> Place:
    return Place(run_id, pack(["draft", run_id.bytes, seq]))


def seal(encoded: bytes, place: Place) -> bytes:
    """What `codec.encode` gave, as it is stored at `place`."""
    return sealed_frame(encoded, place)


def unseal(body: bytes | memoryview, place: Place, *, what: str) -> bytes:
    """What `seal` was given for the same place. Raises Unreadable, naming `what`."""
    return unsealed_frame(bytes(body), place, what=what)


def opened(body: bytes | memoryview, place: Place, *, what: str) -> Any:
    """The value in a stored body. Raises Unreadable, naming `what`."""
    return codec.decode(unseal(body, place, what=what), what=what)


def webhook_place(agent_id: UUID) -> Place:
    """Of the secret that signs what an agent is told; sealed with a key of the agent's own, as a run's bodies are."""
    return Place(agent_id, pack(["webhook secret", agent_id.bytes]))


SEALED = (
    Sealed(
        table="runs_drawn_webhook", key=("id", "agent_id"), place=lambda _, agent: webhook_place(agent), column="secret"
    ),
    Sealed(table="runs_webhook", key=("agent_id",), place=webhook_place, column="secret"),
    Sealed(table="runs_run", key=("id",), place=input_place, column="input"),
    Sealed(table="runs_run", key=("id",), place=result_place, column="result"),
    Sealed(table="runs_step", key=("run_id", "turn", "key"), place=outcome_place, column="outcome"),
    Sealed(
        table="runs_step_evidence",
        key=("run_id", "turn", "key", "id"),
        place=lambda run_id, turn, key, _: outcome_place(run_id, turn, key),
        column="outcome",
    ),
    Sealed(table="runs_gate", key=("run_id", "turn", "key", "kind"), place=answer_place, column="answer"),
    Sealed(table="runs_event", key=("run_id", "name"), place=event_place, column="payload"),
    Sealed(table="runs_draft", key=("run_id", "seq"), place=draft_place),
)
