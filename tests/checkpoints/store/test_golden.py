"""What an earlier version stored can be loaded."""

import json

import pytest
from django.db import connection

from checkpoints.store import load
from tests.checkpoints.golden.corpus import FOLDER
from tests.checkpoints.golden.stored import KEYS, PENDING, POSITION, RUN, TURNS
from tests.checkpoints.strategies import described

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.stored.*.json")), ids=lambda file: file.name)
def test_it_loads_what_every_version_stored(file, settings):
    settings.FERMATA_SNAPSHOT_KEYS = KEYS
    history = []
    with connection.cursor() as cursor:
        for statement in json.loads(file.read_text()):
            params = [bytes.fromhex(p["hex"]) if isinstance(p, dict) else p for p in statement["params"]]
            cursor.execute(f"WITH held AS (SELECT) {statement['sql']}", params)
        for seq, (state, items) in enumerate(TURNS):
            history += items
            snapshot, head = load(cursor, run_id=RUN, seq=seq)
            assert {repr(key): described(item) for key, item in snapshot.state.items()} == {
                repr(key): described(item) for key, item in state.items()
            }
            assert described(list(snapshot.history)) == described(history)
            assert (snapshot.position, snapshot.pending, snapshot.turn) == (POSITION, PENDING, seq)
            assert head.history_length == len(history)
