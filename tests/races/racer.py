"""One of the two processes of a race. It stays up, and is told over a pipe what to do.

A line `{"event", "seat", "scene"}`: it looks at what the event has to look at, and answers `ready`. A line `go`: it
acts, and answers with what came of it, as JSON. Errors of the domain and all others are told by class and facts.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, is_dataclass
from typing import Any
from uuid import UUID

import django


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def outcome(act: Any) -> dict[str, Any]:
    """What acting came to."""
    try:
        act()
    except Exception as error:
        facts = asdict(error) if is_dataclass(error) else {}
        return {"error": type(error).__name__, "says": str(error), "facts": facts}
    return {"error": None}


def main() -> None:
    django.setup()
    from django.db import connection  # noqa: PLC0415 - Django has to be set up first

    from tests.races.events import BY_NAME  # noqa: PLC0415
    from tests.races.places import Scene  # noqa: PLC0415

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        say(str(cursor.fetchone()[0]))
    for line in sys.stdin:
        order = json.loads(line)
        scene = Scene(*(UUID(text) if text else None for text in order["scene"]))
        act = BY_NAME[order["event"]].prepare(scene, order["seat"])
        say("ready")
        sys.stdin.readline()
        say(json.dumps(outcome(act), default=str))


if __name__ == "__main__":
    main()
