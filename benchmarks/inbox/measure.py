"""The times of all places in one database, in a process of its own: `python -m benchmarks.inbox.measure PENDING`.

Fills the database unless it is filled, says `ready`, and answers each line on stdin with one round: JSON of a list of
[group, name, seconds].
"""

import json
import logging
import sys

import django

ROUND = 10  # requests of each place; the first request of all is thrown away

if __name__ == "__main__":
    django.setup()
    logging.disable(logging.ERROR)

    from benchmarks.inbox.database import prepare
    from benchmarks.inbox.places import places
    from fermata.loaded import keep_what_is_loaded

    keep_what_is_loaded()
    people = prepare(int(sys.argv[1]), workflow="benchmark-gate", tell=lambda step: print(step, flush=True))
    everywhere = list(places(people))
    for place in everywhere:
        place.seconds()
    print("ready", flush=True)
    for _ in sys.stdin:
        times = [[it.group, it.name, it.seconds()] for _ in range(ROUND) for it in everywhere]
        print(json.dumps(times), flush=True)
