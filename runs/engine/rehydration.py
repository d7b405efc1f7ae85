"""From a saved snapshot to what the deployed code can go on with, or the reason why it cannot.

The executor resumes through here, and `preflight` asks here before a deploy: so both say the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from django.conf import settings

from checkpoints import codec
from checkpoints.errors import CheckpointError
from checkpoints.store import Head, Snapshot, load
from runs.bodies import input_place, unseal
from runs.engine.signals import Unrehydratable
from runs.engine.workflows import Workflow, find_workflow
from runs.hooks import Cursor


@dataclass(frozen=True)
class Saved:
    """A run as it was saved: its newest checkpoint, and its input, still encoded."""

    snapshot: Snapshot
    head: Head
    input: bytes


def find_flow(*, workflow: str, schema: int, phase: str) -> Workflow:
    """The workflow that goes on with such a run. Raises Unrehydratable."""
    flow = find_workflow(workflow)
    if flow is None:
        raise Unrehydratable(f"workflow {workflow!r} is not registered")
    if schema > flow.schema:
        raise Unrehydratable(f"its schema {schema} is newer than {flow.schema}, which the code of {workflow!r} has")
    if schema < flow.oldest:
        raise Unrehydratable(
            f"its schema {schema} is older than {flow.schema}, and {workflow!r} has no @upcast(from_schema="
            f"{flow.oldest - 1})"
        )
    if phase not in flow.phases:
        raise Unrehydratable(f"workflow {workflow!r} has no phase {phase!r}")
    return flow


def load_saved(cursor: Cursor, run_id: UUID, *, input: bytes) -> Saved:
    """Read a run's newest checkpoint, and its input as it is stored. Raises Unrehydratable."""
    try:
        snapshot, head = load(cursor, run_id=run_id, max_bytes=4 * settings.FERMATA_SNAPSHOT_LIMIT)
        body = unseal(input, input_place(run_id), what="input")
        codec.decode(body, what="input")
    except CheckpointError as error:
        raise Unrehydratable(str(error)) from error
    return Saved(snapshot, head, body)


def upcast(flow: Workflow, snapshot: Snapshot) -> Snapshot:
    """The snapshot with its state as the current schema has it. Raises Unrehydratable where an upcaster breaks."""
    state = snapshot.state
    for schema in range(snapshot.schema, flow.schema):
        try:
            state = flow.upcasters[schema](state)
        except Exception as error:
            raise Unrehydratable(
                f"the upcaster from schema {schema} raised {type(error).__qualname__}: {error}"
            ) from error
        if type(state) is not dict:
            raise Unrehydratable(
                f"the upcaster from schema {schema} returned {type(state).__qualname__}: return the state, a dict"
            )
    return replace(snapshot, state=state)
