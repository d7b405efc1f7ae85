"""Values whose encoded form is kept beside this file, for every later version to read.

`python -m tests.checkpoints.golden.corpus` writes the files that are missing and never changes one that is
there: a change of the format needs a new format number, and adds files with the next version in their names.
"""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo

from checkpoints.codec import encode
from tests.checkpoints.classes import Color, Level, Line, Point, Priority, Rights

VERSION = 1
FOLDER = Path(__file__).parent

VALUES = {
    "json": {
        "null": None,
        "flags": [True, False],
        "numbers": [0, -1, 2**63, 1.5, -0.0],
        "text": "a\u0000b 🍸",
    },
    "integers": [2**64, -(2**63) - 1, 10**100, -(10**100)],
    "decimals": [Decimal("398.6500000000000001554312234"), Decimal("-0"), Decimal("0E-7"), Decimal("1E+50")],
    "moments": [
        datetime(2026, 10, 25, 2, 30, 1, 5, tzinfo=UTC),
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=2), "CEST")),
        datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
        datetime(2026, 10, 25, 2, 30),  # noqa: DTZ001
        date(2026, 10, 25),
        time(2, 30, 0, 7),
        timedelta(days=-1, seconds=5, microseconds=7),
    ],
    "containers": {
        "tuple": (1, (2,)),
        "set": {1, 2, "3"},
        "frozenset": frozenset({(1, 2)}),
        "empty": [[], {}, ()],
    },
    "keys": {1: "a", "1": "b", None: 0, (1, 2): {Color.RED: b"\x00\xff"}, Decimal("1.5"): 2},
    "registered": [
        Color.GREEN,
        Level.HIGH,
        Priority.LOW,
        Rights.READ | Rights.WRITE,
        Line("A-7", Decimal("2.50"), [{"note": "x"}]),
        Point(1, Point(2)),
    ],
    "identifiers": [UUID("12345678-1234-5678-1234-567812345678"), b"", b"\x00" * 20],
    "compressed": {"content": "all work and no play " * 100},
}


def file_for(name: str) -> Path:
    return FOLDER / f"{name}.v{VERSION}.bin"


if __name__ == "__main__":
    for name, value in VALUES.items():
        if not file_for(name).exists():
            file_for(name).write_bytes(encode(value))
