"""What a workflow's author needs. `approvals.gates` adds `require_approval`."""

from checkpoints.codec import SecretRef
from runs.engine.context import Completion, RunContext
from runs.engine.secrets import secret
from runs.engine.tools import DidNotHappen, Happened, NotPerformed, StepFailed, Tool, tool
from runs.engine.turn import AuthorError
from runs.engine.workflows import entry, every, upcast, workflow

__all__ = [
    "AuthorError",
    "Completion",
    "DidNotHappen",
    "Happened",
    "NotPerformed",
    "RunContext",
    "SecretRef",
    "StepFailed",
    "Tool",
    "entry",
    "every",
    "secret",
    "tool",
    "upcast",
    "workflow",
]
