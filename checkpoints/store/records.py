"""The values that cross the store's border."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol
from uuid import UUID


class Cursor(Protocol):
    """What the store needs of a cursor; psycopg's own and Django's wrapper have it. Rows are tuples."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, query: Any, params: Any = ..., /) -> Any: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> Any: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """Which checkpoint this is, and of what. `reason` is one of `checkpoints.models.Reason`."""

    run_id: UUID
    seq: int
    epoch: int
    workflow: str
    schema: int
    phase: str
    turn: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A top-level part of the state: who introduced it, and the SHA-256 and length of its encoding."""

    introduced_seq: int
    digest: bytes
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """What a writer must know of the newest checkpoint to write the next one. Sizes: bytes uncompressed."""

    seq: int
    manifest: Mapping[str, Part]
    history_length: int
    history_digest: bytes
    history_size: int

    @classmethod
    def before_first(cls) -> "Head":
        """The head of a run that has no checkpoint yet."""
        return cls(seq=-1, manifest=MappingProxyType({}), history_length=0, history_digest=bytes(32), history_size=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot(Label):
    """One checkpoint, decoded. `history` is None if not asked for. `digest` covers everything but `at`."""

    at: datetime
    size: int
    digest: bytes
    state: dict[Any, Any]
    history_length: int
    history: tuple[Any, ...] | None
    position: Any
    pending: Any
