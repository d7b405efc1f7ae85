"""One durable step of 1 kB: its recorded outcome and a checkpoint, as each peer makes them."""

from benchmarks.results import Line, Results, Task, listed, milliseconds, task

REPEATED = True
RAW = task("raw", "steps", count=1000)
SHORT = 200


def counts(peer: str, quick: bool) -> tuple[int, ...]:
    if quick:
        return (SHORT, 1000) if peer == "fermata" else (SHORT,)
    return (SHORT, 1000, 10_000) if peer == "fermata" else (SHORT, 1000)


def tasks(quick: bool) -> list[Task]:
    peers = ("fermata", "dbos", "langgraph")
    return [RAW, *(task(peer, "steps", count=count) for peer in peers for count in counts(peer, quick))]


def lines(results: Results, quick: bool) -> list[Line]:
    cells = {"raw": milliseconds(results.median(RAW, "ms"))}
    over_raw = {}
    for peer in ("fermata", "dbos", "langgraph"):
        each = {count: task(peer, "steps", count=count) for count in counts(peer, quick)}
        cells[peer] = listed({count: results.median(it, "ms") for count, it in each.items()}, milliseconds)
        over_raw[peer] = {count: results.ratio(it, RAW, "ms") for count, it in each.items()}
    mine = list(over_raw["fermata"].values())
    short = task("fermata", "steps", count=SHORT)
    times = {peer: results.ratio(task(peer, "steps", count=SHORT), short, "ms") for peer in ("dbos", "langgraph")}
    return [
        Line("one durable step, 1 kB", cells),
        Line(
            "… over raw PostgreSQL",
            {peer: listed(values, lambda value: f"{value:.1f} ×") for peer, values in over_raw.items()},
            "≤ 1.5 × at any length",
            max(mine) <= 1.5,
        ),
        Line(
            "… the longest run's over the shortest's",
            {"fermata": f"{mine[-1] / mine[0]:.2f} ×"},
            "flat (≤ 1.2 ×)",
            mine[-1] / mine[0] <= 1.2,
        ),
        Line(
            f"… over Fermata's, {SHORT} steps",
            {peer: f"{value:.1f} ×" for peer, value in times.items()},
            "≥ 6 ×",
            min(times.values()) >= 6,
        ),
    ]
