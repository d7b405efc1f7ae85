"""Two workers resume the same approved run at the same time: how often does it pay?"""

from benchmarks.results import Line, Results, Task, task

REPEATED = False


def _all(quick: bool) -> dict[str, Task]:
    return {peer: task(peer, "twice", runs=10 if quick else 30) for peer in ("fermata", "dbos", "langgraph")}


def tasks(quick: bool) -> list[Task]:
    return list(_all(quick).values())


def lines(results: Results, quick: bool) -> list[Line]:
    each = _all(quick)
    runs = dict(each["fermata"].parameters)["runs"]
    paid = {peer: int(results.median(it, "payments")) for peer, it in each.items()}
    return [
        Line(
            f"two workers resume the same approved run, {runs} runs",
            {peer: f"{count} payments" for peer, count in paid.items()},
            f"{runs} payments",
            paid["fermata"] == runs,
        )
    ]
