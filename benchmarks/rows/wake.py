"""From a decision's commit to the first line of the code that it lets go on, with nothing else to do."""

from benchmarks.results import Line, Results, Task, percentile, task

REPEATED = True


def _all(quick: bool) -> dict[str, Task]:
    return {peer: task(peer, "wake", samples=30 if quick else 100) for peer in ("fermata", "dbos", "langgraph")}


def tasks(quick: bool) -> list[Task]:
    return list(_all(quick).values())


def lines(results: Results, quick: bool) -> list[Line]:
    samples = {peer: results.pooled(it, "ms") for peer, it in _all(quick).items()}
    half = {peer: percentile(found, 0.50) for peer, found in samples.items()}
    most = {peer: percentile(found, 0.95) for peer, found in samples.items()}
    return [
        Line(
            "decision → first line of resumed code",
            {peer: f"p50 {half[peer]:.0f} ms, p95 {most[peer]:.0f} ms" for peer in samples},
            "p50 ≤ 15 ms, p95 ≤ 40 ms",
            half["fermata"] <= 15 and most["fermata"] <= 40,
        )
    ]
