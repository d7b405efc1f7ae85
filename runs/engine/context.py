"""`run`, as a phase sees it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from django.conf import settings

from checkpoints import codec
from checkpoints.store import decode_item, encode_item
from runs.engine.connection import database_time, engine_connection, reconnect
from runs.engine.effects import Performer, Permission
from runs.engine.gates import Gates, Opener, Question
from runs.engine.secrets import SecretMissing, secret
from runs.engine.signals import Signal, Unrehydratable
from runs.engine.tools import NotPerformed, Tool, tool
from runs.engine.turn import AuthorError, Turn

log = logging.getLogger(__name__)

GATE_STEP = "gate:"  # a performed grant's step is keyed by its gate, apart from the author's own keys
CLOCK_STEP = "clock:"


@dataclass(frozen=True)
class Completion:
    """What `run.complete` returns and the phase must return: the run's result."""

    body: bytes


class History(Sequence[Any]):
    """The run's append-only list. Items are encoded when appended; those handed out are read-only."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = [codec.freeze(item) for item in items]
        self.saved = len(self._items)
        self.added: list[bytes] = []
        self.guard: Callable[[], None] = lambda: None

    def append(self, item: Any) -> None:
        """Add an item. Raises Unencodable, with its path, for what cannot be saved."""
        self.guard()
        index = len(self._items)
        body = encode_item(item, index)
        self._items.append(codec.freeze(decode_item(body, index)))
        self.added.append(body)

    def mark_saved(self, length: int) -> None:
        """The first `length` items are in a checkpoint now."""
        del self.added[: length - self.saved]
        self.saved = length

    def __getitem__(self, index: Any) -> Any:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


@tool(effect="read", name="fermata/now")
def _database_time() -> datetime:
    connection = engine_connection()
    if not reconnect(connection, give_up_after=settings.FERMATA_LEASE_SECONDS):
        raise NotPerformed("the database is away")
    return database_time(connection)


class RunContext:
    """The run inside a phase: `state`, `history`, `input`, `position`, `pending`, and what a phase may do.

    It belongs to the thread that runs the phase. Once the engine has stopped the phase, every call raises that again.
    """

    def __init__(
        self,
        *,
        run_id: UUID,
        workflow: str,
        input: Any,
        state: dict[str, Any],
        history: History,
        position: Any,
        pending: Any,
        turn: Turn,
        performer: Performer,
        gates: Gates,
    ) -> None:
        self.id = run_id
        self.workflow = workflow
        self.input = input
        self.state = state
        self.history = history
        history.guard = self._check
        self.position = position
        self.pending = pending
        self.latched: Signal | None = None
        self.completed: Completion | None = None
        self._turn = turn
        self._performer = performer
        self._gates = gates
        self._clock_reads = 0
        self._thread = threading.get_ident()

    @property
    def turn(self) -> int:
        """The number of the turn: how many phases have ended."""
        return self._turn.number

    # --- steps -----------------------------------------------------------------------------------------------

    def step(self, key: str, fn: Tool | Callable[..., Any], /, *args: Any, each: object = None, **kwargs: Any) -> Any:
        """Call a tool once in this turn: met again after an interruption, it gives back its recorded result.

        `key` is unique within the phase; in a loop, `each` tells its calls apart. Raises StepFailed for a known
        failure, AuthorError or TypeError for a wrong call.
        """
        if not isinstance(fn, Tool):
            name = getattr(fn, "__name__", repr(fn))
            raise AuthorError(
                f"step {key!r}: {name} is not a tool; decorate it with @tool(effect=...), so that the engine knows "
                "what a crash may do to it"
            )
        if fn.gated:
            raise AuthorError(
                f"step {key!r}: {fn.name} is gated; ask with require_approval(run, ...) and call grant.perform(run)"
            )
        if str(key).startswith((GATE_STEP, CLOCK_STEP)):
            raise AuthorError(f"step {key!r}: keys that begin with {GATE_STEP!r} or {CLOCK_STEP!r} are the engine's")
        full = key if each is None else f"{key}[{each}]"
        arguments = fn.bind(args, kwargs)
        with self._working():
            self._turn.use(full, what="step")
            if self._turn.crowded:
                log.warning("run %s: phase %s has made many steps; end it sooner", self.id, self._turn.phase)
            return self._performer.perform(full, fn, arguments)

    def perform(self, key: str, fn: Tool, arguments: Mapping[str, Any], permission: Permission) -> Any:
        """Perform what a gate allowed (the floor above's way in; authors call `grant.perform`)."""
        with self._working():
            self._turn.use(GATE_STEP + key, what="step")
            return self._performer.perform(GATE_STEP + key, fn, arguments, permission=permission)

    # --- gates -----------------------------------------------------------------------------------------------

    def ask(self, questions: Sequence[Question], opener: Opener) -> dict[str, Any]:
        """Ask at gates (the floor above's way in; authors call `require_approval`). Answers by key."""
        with self._working():
            for question in questions:
                self._turn.use(question.key, what="gate")
            return self._gates.ask(questions, opener)

    def ask_again(self, question: Question, opener: Opener) -> dict[str, Any]:
        """Ask a gate once more whose grant lapsed. Parks the run, unless a rule answers at once."""
        with self._working():
            self._turn.forget(GATE_STEP + question.key, what="step")
            return self._gates.reopen(question, opener)

    def sleep_until(self, when: datetime, *, key: str = "sleep") -> None:
        """Park the run until `when` (aware). It costs a column, not a process."""
        if when.tzinfo is None:
            raise AuthorError("sleep_until: the time needs a time zone; start from run.now()")
        with self._working():
            self._turn.use(key, what="gate")
            self._gates.sleep(key, when)

    def wait_for_event(self, name: str) -> Any:
        """The payload that the outside posted under `name`, before or after now; waits for it, parked."""
        with self._working():
            self._turn.use(name, what="gate")
            return self._gates.wait_for_event(name)

    # --- stable values ---------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """The time by the database's clock; the same again when the phase is tried again."""
        with self._working():
            self._clock_reads += 1
            now: datetime = self._performer.perform(f"{CLOCK_STEP}{self._clock_reads}", _database_time, {})
            return now

    def uuid(self, key: str) -> UUID:
        """A UUID of this run, turn and key: the same again when the phase is tried again."""
        self._check()
        return uuid5(self.id, f"{self._turn.number}/{self._turn.phase}/{key}")

    # --- secrets ---------------------------------------------------------------------------------------------

    def secret(self, name: str | codec.SecretRef) -> str:
        """The value of a secret, had anew at each resume; where it would be saved, that is refused.

        Without it the run is blocked, and goes on once the deployment has it. Raises ValueError for no secret's name.
        """
        with self._working():
            try:
                return secret(name)
            except SecretMissing as error:
                raise Unrehydratable(str(error)) from error
            except NotPerformed as error:
                raise self._performer.later("a secret", error) from error

    # --- the end ---------------------------------------------------------------------------------------------

    def complete(self, result: Any = None) -> Completion:
        """End the run with this result: `return run.complete(...)`. Nothing may follow it."""
        self._check()
        self.completed = Completion(codec.encode(result, path="result"))
        return self.completed

    # --- inside ----------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self.latched is not None:
            raise self.latched
        if threading.get_ident() != self._thread:
            raise AuthorError("run was used from another thread; only the thread that runs the phase may use it")
        if self.completed is not None:
            raise AuthorError("nothing may follow run.complete(...): return its value")

    @contextmanager
    def _working(self) -> Iterator[None]:
        self._check()
        try:
            yield
        except Signal as signal:
            self.latched = signal
            raise
