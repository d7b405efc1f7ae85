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

    from benchmarks.inbox.filling import fill
    from benchmarks.inbox.people import People, known, settle_in
    from benchmarks.inbox.places import places
    from runs.engine.executor import execute
    from runs.services.starting import start_run

    def prepare(pending: int) -> People:
        found = known()
        if found is not None:
            return found
        people = settle_in()
        run = start_run(agent=people.agents[0], workflow="benchmark-gate", input=False)
        execute(run.id, worker="benchmark")
        fill(
            pending=pending,
            template=str(run.id),
            named=f"person:{people.reviewer.pk}",
            decider=people.other.pk,
            tell=lambda step: print(step, flush=True),
        )
        return people

    everywhere = list(places(prepare(int(sys.argv[1]))))
    for place in everywhere:
        place.seconds()
    print("ready", flush=True)
    for _ in sys.stdin:
        times = [[it.group, it.name, it.seconds()] for _ in range(ROUND) for it in everywhere]
        print(json.dumps(times), flush=True)
