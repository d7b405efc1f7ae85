"""What can go wrong with a run. Each exception carries the facts; `fermata.problems` turns them into HTTP."""

from dataclasses import dataclass
from uuid import UUID


class RunError(Exception):
    """The root of everything that `runs` raises for its callers."""


@dataclass
class RunNotFound(RunError):
    run_id: UUID

    def __str__(self) -> str:
        return f"there is no run {self.run_id}"


@dataclass
class WrongState(RunError):
    """The run is not in a state that allows this."""

    run_id: UUID
    status: str
    wanted: str

    def __str__(self) -> str:
        return f"the run is {self.status}: it cannot be {self.wanted}"


@dataclass
class UnknownWorkflow(RunError):
    name: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"there is no workflow {self.name!r} here; known: {', '.join(self.known) or 'none'}"


@dataclass
class UnknownPhase(RunError):
    workflow: str
    phase: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"an external agent cannot enter {self.phase!r} of {self.workflow!r}; "
            f"phases marked @entry(external=True): {', '.join(self.known) or 'none'}"
        )


@dataclass
class InvalidInput(RunError):
    """A value that cannot be stored as it is; `path` names where."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass
class CredentialPosted(InvalidInput):
    """What was posted holds what looks like a credential; `rule` names the form. The text is nowhere in the error."""

    rule: str


@dataclass
class StaleCheckpoint(RunError):
    """The caller named a checkpoint that is not the newest."""

    run_id: UUID
    head_seq: int
    given: int

    def __str__(self) -> str:
        return f"the run's newest checkpoint is {self.head_seq}, not {self.given}"


@dataclass
class NotAcknowledged(RunError):
    """A fork starts before effects that its parent already caused; the caller must say that it knows."""

    run_id: UUID
    effects: tuple[str, ...]

    def __str__(self) -> str:
        return f"after that checkpoint the run already did: {', '.join(self.effects)}; acknowledge them to fork"


@dataclass
class EventConflict(RunError):
    run_id: UUID
    name: str

    def __str__(self) -> str:
        return f"event {self.name!r} was already told with another payload"


@dataclass
class NothingToContinue(RunError):
    external_id: str

    def __str__(self) -> str:
        return f"there is no run with external_id {self.external_id!r} to continue"
