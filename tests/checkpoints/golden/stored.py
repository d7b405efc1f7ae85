"""A run of three checkpoints as it is stored, in the clear and encrypted, for every later version to read.

`python -m tests.checkpoints.golden.stored` writes the files that are missing, as `corpus` does.
"""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from checkpoints.store import Head, Prepared, encode_item, prepare
from tests.checkpoints.classes import Color, Line
from tests.checkpoints.golden.corpus import FOLDER, VERSION

RUN = UUID("0193b5a0-0000-7000-8000-000000000001")
KEYS = {"golden": bytes(range(32))}

TURNS: list[tuple[dict[Any, Any], list[Any]]] = [
    ({"order": Line("A-7", Decimal("49.90")), "n": 0, 1: "a", "1": "b"}, [{"role": "user", "content": "🍸\u0000"}]),
    ({"order": Line("A-7", Decimal("49.90")), "n": 1}, []),
    ({"n": 1, "color": Color.RED}, [{"role": "tool", "content": "all work and no play " * 50}, (1, 2)]),
]
POSITION = {"step": ("act", 2)}
PENDING = [{"id": "call_1", "args": {"amount": Decimal("49.90")}}]


def file_for(kind: str) -> Path:
    return FOLDER / f"{kind}.stored.v{VERSION}.json"


def written() -> list[Prepared]:
    head: Head | None = None
    checkpoints = []
    for seq, (state, items) in enumerate(TURNS):
        start = head.history_length if head else 0
        prepared = prepare(
            run_id=RUN,
            head=head,
            seq=seq,
            epoch=5,
            workflow="refund-agent",
            schema=1,
            phase="propose",
            turn=seq,
            reason="phase",
            state=state,
            new_history=[encode_item(item, start + index) for index, item in enumerate(items)],
            position=POSITION,
            pending=PENDING,
            limit=10**6,
        )
        checkpoints.append(prepared)
        head = prepared.head
    return checkpoints


def as_json(checkpoints: list[Prepared]) -> str:
    statements = [
        {"sql": sql, "params": [{"hex": p.hex()} if isinstance(p, bytes) else str(p) for p in params]}
        for prepared in checkpoints
        for _, sql, params in prepared.ctes("held")
    ]
    return json.dumps(statements, indent=1) + "\n"


if __name__ == "__main__":
    settings.configure(FERMATA_SNAPSHOT_KEYS={}, FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED=False)
    for kind, keys in (("clear", {}), ("encrypted", KEYS)):
        settings.FERMATA_SNAPSHOT_KEYS = keys
        if not file_for(kind).exists():
            file_for(kind).write_text(as_json(written()))
