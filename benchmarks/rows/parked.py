"""Runs parked at a gate with 10 kB of state: bytes on disk, and what the process holds for them."""

from benchmarks.results import Line, Results, Task, kilobytes, task

REPEATED = False


def _all(quick: bool) -> dict[str, Task]:
    return {peer: task(peer, "parked", runs=100 if quick else 300) for peer in ("fermata", "dbos", "langgraph")}


def tasks(quick: bool) -> list[Task]:
    return list(_all(quick).values())


def lines(results: Results, quick: bool) -> list[Line]:
    each = _all(quick)
    runs = dict(each["fermata"].parameters)["runs"]
    allowed = 1.2 * results.median(each["fermata"], "compressed") + 2000
    found = {peer: results.median(it, "bytes") for peer, it in each.items()}
    held = {peer: int(results.median(it, "threads")) for peer, it in each.items()}
    memory = {peer: results.median(it, "memory") / 1e6 for peer, it in each.items()}
    return [
        Line(
            f"{runs} runs parked, 10 kB of state: disk per run",
            {peer: kilobytes(value) for peer, value in found.items()},
            f"≤ {kilobytes(allowed)}",
            found["fermata"] <= allowed,
        ),
        Line(
            "… threads held, growth of the process",
            {peer: f"{held[peer]}, {memory[peer]:+.1f} MB" for peer in each},
            "no thread",
            held["fermata"] == 0,
        ),
    ]
