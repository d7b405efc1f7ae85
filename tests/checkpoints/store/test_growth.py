"""A thousand turns cost a thousand turns' bytes (deer-flow#3011: 135 GB for a dozen threads)."""

import base64
import random
from itertools import pairwise

import pytest
from django.db import connection

from tests.checkpoints.store.runs import TABLES, Run

pytestmark = pytest.mark.django_db(transaction=True)


def stored() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name",
            [list(TABLES)],
        )
        return int(cursor.fetchone()[0])


def test_bytes_per_turn_are_flat():
    source, run = random.Random(7), Run()
    sizes = []
    for turn in range(800):
        if turn % 400 == 0:
            sizes.append(stored())
        payload = base64.b64encode(source.randbytes(768)).decode()
        run.save({"turn": turn, "order": {"id": "A-7"}}, [{"role": "assistant", "content": payload}])
    sizes.append(stored())
    first, second = (after - before for before, after in pairwise(sizes))
    assert second / 400 <= 1.3 * 1024 + 300
    assert second <= first * 1.1
