"""A database with people, agents and cards."""

from collections.abc import Callable

from benchmarks.inbox.filling import fill
from benchmarks.inbox.people import People, known, settle_in
from runs.engine.executor import execute
from runs.services.starting import start_run


def prepare(pending: int, *, workflow: str, tell: Callable[[str], None]) -> People:
    """`pending` cards and what belongs to them, unless the database was filled before.

    `workflow` asks once; what it asks is what the cards are like. `tell` hears of each step.
    """
    found = known()
    if found is not None:
        return found
    people = settle_in()
    run = start_run(agent=people.agents[0], workflow=workflow, input=False)
    execute(run.id, worker="benchmark")
    fill(
        pending=pending,
        template=str(run.id),
        named=f"person:{people.reviewer.pk}",
        decider=people.other.pk,
        tell=tell,
    )
    return people
