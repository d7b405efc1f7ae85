"""Bytes stored by a run whose every turn adds 1 kB that does not compress to its history."""

from benchmarks.results import Line, Results, Task, kilobytes, task

REPEATED = False
NEW = 1024
ALLOWED = 1.3 * NEW + 300


def _all(quick: bool) -> dict[str, Task]:
    turns = 300 if quick else 1000
    return {
        "raw": task("raw", "growth", turns=turns),
        "fermata": task("fermata", "growth", turns=turns, workflow="benchmark-history"),
        "langgraph": task("langgraph", "growth", turns=turns),
    }


def _recorded(quick: bool) -> Task:
    return task("fermata", "growth", turns=300 if quick else 1000, workflow="benchmark-steps")


def tasks(quick: bool) -> list[Task]:
    return [*_all(quick).values(), _recorded(quick)]


def lines(results: Results, quick: bool) -> list[Line]:
    found = {peer: results.median(it, "bytes") for peer, it in _all(quick).items()}
    turns = 300 if quick else 1000
    return [
        Line(
            f"bytes a turn, {turns:,} turns that each add 1 kB",
            {peer: kilobytes(value) for peer, value in found.items()},
            f"≤ {kilobytes(ALLOWED)}",
            found["fermata"] <= ALLOWED,
        ),
        Line(
            "… where a recorded step's outcome is that 1 kB",
            {"fermata": kilobytes(results.median(_recorded(quick), "bytes"))},
        ),
    ]
