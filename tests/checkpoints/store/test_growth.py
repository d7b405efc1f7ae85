"""A thousand turns cost a thousand turns' bytes (deer-flow#3011: 135 GB for a dozen threads)."""

import base64
import random
from itertools import pairwise

import pytest
from django.db import connection

from tests.checkpoints.store.runs import TABLES, Run

pytestmark = pytest.mark.django_db(transaction=True)


# Without the maps of free space, which vacuum makes once, whenever it comes by.
STORED = """
WITH kept AS (
    SELECT oid FROM pg_class WHERE oid = ANY(%s::regclass[])
), with_toast AS (
    SELECT oid FROM kept UNION SELECT reltoastrelid FROM pg_class JOIN kept USING (oid) WHERE reltoastrelid <> 0
)
SELECT sum(pg_relation_size(oid)) FROM (
    SELECT oid FROM with_toast UNION SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM with_toast)
) AS every
"""


def stored() -> int:
    with connection.cursor() as cursor:
        cursor.execute(STORED, [list(TABLES)])
        return int(cursor.fetchone()[0])


def test_bytes_per_turn_are_flat():
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(TABLES)}")  # what other tests left free would be filled first
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
