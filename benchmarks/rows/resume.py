"""Resuming runs that were all decided: runs per second until the last one has ended."""

from benchmarks.results import Line, Results, Task, task

REPEATED = True


def _all(quick: bool) -> dict[str, Task]:
    return {peer: task(peer, "resume", runs=100 if quick else 300) for peer in ("fermata", "dbos", "langgraph")}


def tasks(quick: bool) -> list[Task]:
    return list(_all(quick).values())


def lines(results: Results, quick: bool) -> list[Line]:
    each = _all(quick)
    runs = dict(each["fermata"].parameters)["runs"]
    times = {peer: results.ratio(each["fermata"], it, "rate") for peer, it in each.items()}
    return [
        Line(
            f"resume {runs} decided runs",
            {peer: f"{results.median(it, 'rate'):.0f} runs/s" for peer, it in each.items()},
        ),
        Line(
            "… Fermata's over the peer's",
            {peer: f"{times[peer]:.1f} ×" for peer in ("dbos", "langgraph")},
            "≥ 3 × DBOS",
            times["dbos"] >= 3,
        ),
    ]
