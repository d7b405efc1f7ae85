"""What is measured, and what came of it."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PEERS = ("raw", "fermata", "dbos", "langgraph")


@dataclass(frozen=True)
class Task:
    """One measurement: a function of a peer's module, with its parameters."""

    peer: str
    function: str
    parameters: tuple[tuple[str, Any], ...]

    def __str__(self) -> str:
        return " ".join((self.peer, self.function, *(f"{value}" for _, value in self.parameters)))


def task(peer: str, function: str, **parameters: Any) -> Task:
    return Task(peer, function, tuple(parameters.items()))


@dataclass(frozen=True)
class Line:
    """A line of the table: what each peer's cell says, the mark, and whether Fermata met it (None: no mark)."""

    work: str
    cells: Mapping[str, str]
    mark: str = ""
    met: bool | None = None


@dataclass
class Results:
    """Every round's figures of every task, in the order of the rounds."""

    figures: dict[Task, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def median(self, task: Task, key: str) -> float:
        return statistics.median(figures[key] for figures in self.figures[task])

    def ratio(self, task: Task, base: Task, key: str) -> float:
        """How many times `base`, the median over the rounds: both drift with the machine, their ratio less."""
        pairs = zip(self.figures[task], self.figures[base], strict=True)
        return statistics.median(one[key] / other[key] for one, other in pairs)

    def pooled(self, task: Task, key: str) -> list[float]:
        """All rounds' samples together, sorted."""
        return sorted(sample for figures in self.figures[task] for sample in figures[key])


def listed(values: Mapping[int, float], show: Callable[[float], str]) -> str:
    """`1.20 ms at 200, 1.21 ms at 1,000`."""
    return ", ".join(f"{show(value)} at {count:,}" for count, value in values.items())


def percentile(samples: list[float], share: float) -> float:
    """Of sorted samples; the nearest rank."""
    return samples[min(len(samples) - 1, int(len(samples) * share))]


def milliseconds(value: float) -> str:
    return f"{value:.2f} ms" if value < 10 else f"{value:.0f} ms"


def kilobytes(value: float) -> str:
    return f"{value / 1000:.1f} kB"
