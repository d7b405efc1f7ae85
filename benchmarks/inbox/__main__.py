"""`make bench INBOX=1`: how long each page takes with a thousand pending cards and with a million, and how many times.

Takes a quarter of an hour on two quiet cores, half of it to fill the larger database, and 18 GB of disk while it runs.
QUICK=1: with 200 and 20,000, in ten minutes, and the result is only printed.
"""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.report import RESULTS
from benchmarks.results import milliseconds, percentile
from benchmarks.server import databases, django_url, server_version

CHECKOUT = Path(__file__).resolve().parent.parent.parent
BEGIN, END = "<!-- Written by `make bench INBOX=1`. -->\n", "<!-- To here. -->\n"
MARK = 1.5
ROUNDS = 4
BEGAN = time.monotonic()

Times = dict[tuple[str, str], list[float]]


def main() -> int:
    quick = os.environ.get("QUICK", "") not in ("", "0")
    small, large = (200, 20_000) if quick else (1000, 1_000_000)
    with databases(("small", "large")) as urls:
        lines = compared({small: django_url(urls["small"]), large: django_url(urls["large"])})
    print("\n".join(lines))
    if not quick:
        write(lines)
    return 0


def compared(urls: dict[int, str]) -> list[str]:
    """The table, as lines of Markdown. The databases take turns; `urls` are by pending cards, the fewest first."""
    children = {pending: _child(pending, url) for pending, url in urls.items()}
    times: dict[int, Times] = {pending: defaultdict(list) for pending in urls}
    try:
        for pending, child in children.items():
            while (line := _line(child)) != "ready":
                tell(f"{pending:,} pending: {line}")
        for number in range(ROUNDS):
            tell(f"round {number + 1} of {ROUNDS}")
            for pending, child in children.items():
                _say(child, "again")
                for group, name, seconds in json.loads(_line(child)):
                    times[pending][group, name].append(seconds * 1000)
    finally:
        for child in children.values():
            child.kill()
            child.wait()
    return _table(*times.items())


def tell(line: str) -> None:
    """How far it is, and after how many minutes."""
    print(f"{(time.monotonic() - BEGAN) / 60:6.1f} min  {line}", file=sys.stderr, flush=True)


def write(lines: list[str]) -> None:
    """Replace the table in RESULTS.md."""
    before, _, rest = RESULTS.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    RESULTS.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n\n{END}{after}")


def _child(pending: int, url: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        "PYTHONWARNINGS": "ignore",
    }
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=CHECKOUT, env=environment, check=True)
    command = [sys.executable, "-m", "benchmarks.inbox.measure", str(pending)]
    return subprocess.Popen(
        command, cwd=CHECKOUT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _say(child: subprocess.Popen[str], text: str) -> None:
    if child.stdin is None:
        raise RuntimeError("the measurement has no stdin")
    child.stdin.write(f"{text}\n")
    child.stdin.flush()


def _line(child: subprocess.Popen[str]) -> str:
    line = child.stdout.readline() if child.stdout else ""
    if not line:
        raise SystemExit("the measurement ended; its error stands above")
    return line.strip()


def _table(small: tuple[int, Times], large: tuple[int, Times]) -> list[str]:
    rows = [
        f"| place | {small[0]:,} pending: p50, p95 | {large[0]:,} pending: p50, p95 | p95, times | ≤ {MARK} × |",
        "| --- | --- | --- | --- | --- |",
    ]
    group = ""
    met = 0
    for key, few in small[1].items():
        many = large[1][key]
        if key[0] != group:
            group = key[0]
            rows.append(f"| **{group}** | | | | |")
        times = _p95(many) / _p95(few)
        met += times <= MARK
        verdict = "met" if times <= MARK else "**missed**"
        rows.append(f"| {key[1]} | {_shown(few)} | {_shown(many)} | {times:.2f} | {verdict} |")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    samples = len(next(iter(small[1].values())))
    said = (f"{datetime.now(UTC):%Y-%m-%d}", f"{samples} requests each", f"load at the end {load}")
    rows += ["", f"{met} of {len(small[1])} met. {', '.join(said)}; PostgreSQL {server_version()}."]
    return rows


def _p95(samples: list[float]) -> float:
    return percentile(sorted(samples), 0.95)


def _shown(samples: list[float]) -> str:
    return f"{milliseconds(percentile(sorted(samples), 0.5))}, {milliseconds(_p95(samples))}"


if __name__ == "__main__":
    sys.exit(main())
