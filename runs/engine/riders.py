"""What a turn has come to know and nothing depends on yet: it rides on the next durable statement.

Whoever starts the turn again before that reads again, and is given the same answers again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from uuid import UUID

from checkpoints.store import Cte
from runs.bodies import outcome_place, seal
from runs.engine.composing import Ctes

RECORD_READS = """
    INSERT INTO runs_step (run_id, turn, key, ordinal, phase, tool, effect, args_hash, state, generation, epoch, build,
                           started_at, finished_at, outcome)
    SELECT fence.run_id, %s, r.key, r.ordinal, %s, r.tool, 'read', r.args_hash, r.state, 0, %s, %s, now(), now(),
           r.outcome
    FROM fence, (VALUES {rows}) AS r(key, ordinal, tool, args_hash, state, outcome)
    ON CONFLICT (run_id, turn, key) DO NOTHING
"""
READ_ROW = "(%s::text, %s::int, %s::text, %s::bytea, %s::text, %s::bytea)"

# From here on the turn goes by these answers: a question that changes now is a divergence. Values in selects of their
# own, which PostgreSQL does not estimate by: it plans the statement that they ride on once.
RECORD_DELIVERIES = """
    UPDATE runs_gate SET delivered_at = fermata_now() FROM fence
    WHERE runs_gate.run_id = fence.run_id AND answer IS NOT NULL
      AND (turn, key) IN (SELECT * FROM unnest((SELECT %s::int[]), (SELECT %s::text[])))
"""


@dataclass(frozen=True)
class ReadOutcome:
    """A read's outcome, waiting to be recorded."""

    key: str
    ordinal: int
    tool: str
    args_hash: bytes
    state: str
    outcome: bytes


@dataclass
class Riders:
    """Outcomes of reads, and the gates (turn, key) whose answers the turn was given."""

    reads: list[ReadOutcome] = field(default_factory=list)
    delivered: list[tuple[int, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.reads or self.delivered)

    def clear(self) -> None:
        self.reads.clear()
        self.delivered.clear()

    def ctes(self, *, run_id: UUID, epoch: int, build: str, turn: int, phase: str) -> Ctes:
        """The reads of `turn` and the deliveries, as statements behind a fence."""
        return [*self._reads(run_id, epoch, build, turn, phase), *self.deliveries()]

    def deliveries(self) -> list[Cte]:
        if not self.delivered:
            return []
        turns, keys = zip(*self.delivered, strict=True)
        return [("deliveries", RECORD_DELIVERIES, (list(turns), list(keys)))]

    def _reads(self, run_id: UUID, epoch: int, build: str, turn: int, phase: str) -> list[Cte]:
        if not self.reads:
            return []
        rows = [
            (r.key, r.ordinal, r.tool, r.args_hash, r.state, seal(r.outcome, outcome_place(run_id, turn, r.key)))
            for r in self.reads
        ]
        return [("reads", _record_reads(len(rows)), (turn, phase, epoch, build, *chain.from_iterable(rows)))]


@lru_cache(256)
def _record_reads(count: int) -> str:
    return RECORD_READS.format(rows=", ".join([READ_ROW] * count))
