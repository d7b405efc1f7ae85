"""`make bench`: measure all of it in turn, several rounds, and write `benchmarks/RESULTS.md`.

`QUICK=1`: one round of shorter measurements. `ROWS=steps,wake`: only these rows, and the results are only printed.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

from benchmarks import report
from benchmarks.results import PEERS, Results, Task
from benchmarks.rows import ROWS
from benchmarks.server import databases, django_url

CHECKOUT = Path(__file__).resolve().parent.parent
LIMIT = 600  # seconds for one measurement


def main() -> int:
    quick = os.environ.get("QUICK", "") not in ("", "0")
    chosen = [row for row in ROWS if _name(row) in (os.environ.get("ROWS") or _name(row)).split(",")]
    rounds = 1 if quick else 3
    began = time.monotonic()
    results = Results()
    plan = [it for number in range(rounds) for row in chosen if number == 0 or row.REPEATED for it in row.tasks(quick)]
    with databases(PEERS) as urls:
        _prepare(urls["fermata"])
        for number, it in enumerate(plan):
            _progress(f"{number + 1}/{len(plan)}  {it}")
            results.figures[it].append(_measure(it, urls[it.peer]))
    _progress("")
    lines = [line for row in chosen for line in row.lines(results, quick)]
    print(report.text(lines))
    if len(chosen) == len(ROWS):
        report.write(lines, rounds=rounds, quick=quick, seconds=time.monotonic() - began)
    return 0


def _name(row: ModuleType) -> str:
    return row.__name__.rpartition(".")[2]


def _measure(it: Task, url: str) -> dict[str, object]:
    command = [sys.executable, "-m", "benchmarks.measure", it.peer, it.function, url, json.dumps(dict(it.parameters))]
    environment = _fermata(url) if it.peer == "fermata" else dict(os.environ)
    done = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    if done.returncode:
        raise SystemExit(f"\n{it} failed:\n{done.stderr[-3000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _prepare(url: str) -> None:
    _progress("migrations")
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=CHECKOUT, env=_fermata(url), check=True)


def _fermata(url: str) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": django_url(url),
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        "PYTHONWARNINGS": "ignore",
    }


def _progress(what: str) -> None:
    """One line on stderr, overwritten where that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what}")
    elif what:
        sys.stderr.write(f"{what}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
