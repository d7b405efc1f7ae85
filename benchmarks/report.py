"""The table, for people to read and for `benchmarks/RESULTS.md`."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.results import PEERS, Line
from benchmarks.server import server_version

RESULTS = Path(__file__).parent / "RESULTS.md"
MARKER = "<!-- Everything below is written by `make bench`. -->\n"
HEADINGS = ("work", "raw PostgreSQL", "Fermata", "DBOS", "LangGraph", "mark", "")
PACKAGES = ("dbos", "langgraph", "langgraph-checkpoint-postgres", "psycopg", "celery", "Django")


def table(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    verdict = {None: "", True: "met", False: "**missed**"}
    return [(line.work, *(line.cells.get(peer, "–") for peer in PEERS), line.mark, verdict[line.met]) for line in lines]


def text(lines: Sequence[Line]) -> str:
    """The table for a terminal: a block a line, since a peer's figures at several counts are wide."""
    out = []
    for work, *cells, mark, verdict in table(lines):
        figures = "; ".join(
            f"{heading} {cell}" for heading, cell in zip(HEADINGS[1:5], cells, strict=True) if cell != "–"
        )
        out.append(f"{work}\n    {figures}" + (f"\n    mark: {mark}: {verdict.strip('*')}" if mark else ""))
    return "\n".join(out)


def write(lines: Sequence[Line], *, rounds: int, quick: bool, seconds: float) -> None:
    """Replace the measured part of RESULTS.md; what people wrote above the marker stays."""
    rows = [HEADINGS, tuple("---" for _ in HEADINGS), *table(lines)]
    markdown = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    above = RESULTS.read_text().partition(MARKER)[0] if RESULTS.exists() else ""
    RESULTS.write_text(f"{above}{MARKER}\n{markdown}\n\n{_circumstances(rounds, quick, seconds)}\n")


def _circumstances(rounds: int, quick: bool, seconds: float) -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    kind = "quick, " if quick else ""
    machine = f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"
    return "\n".join(
        (
            f"- {datetime.now(UTC):%Y-%m-%d}, {kind}{rounds} rounds in {seconds / 60:.0f} minutes",
            f"- {machine}; load at the end {load}",
            f"- PostgreSQL {server_version()}",
            f"- Python {platform.python_version()}, {versions}",
        )
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
