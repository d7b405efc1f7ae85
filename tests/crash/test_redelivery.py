"""Calls that take longer than every time-out on their way: the broker's, the lease, their own deadline.

Real brokers and workers. The receiver counts: whatever is delivered again, the call is dispatched once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from approvals.models import Approval
from runs.models import Agent, Run, RunHead, StepEvidence
from runs.services.starting import start_run
from tests.crash import flows  # noqa: F401 - registers the workflows
from tests.crash.harness import Receiver, answer_as_a_person_would, check
from tests.outages.rabbitmq import RabbitMQ
from tests.support.waiting import until
from tests.support.workers import Worker, WorkerFactory

BROKER_SECONDS = 5
CALL_SECONDS = 3 * BROKER_SECONDS
SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.crash.settings", "RECEIVER_SECONDS": str(CALL_SECONDS)}


def head_of(run: Run) -> RunHead:
    return RunHead.objects.get(run=run)


def wait_for(run: Run, status: str, *, reason: str = "", seconds: float = 60) -> None:
    until(
        lambda: (head_of(run).status, head_of(run).reason) == (status, reason),
        what=f"the run is {status} {reason}",
        seconds=seconds,
    )


def approved(run: Run, reviewer: User, receiver: Receiver) -> None:
    wait_for(run, "suspended", reason="approval")
    answer_as_a_person_would(run, reviewer, receiver)


def redelivered(*workers: Worker) -> bool:
    """Whether a message about a run came more than once to these workers."""
    said = "".join(worker.output() for worker in workers)
    messages = re.findall(r"Task runs\.tasks\.execute\[(\S+)\] received", said)
    return len(messages) > len({*messages})


@pytest.mark.parametrize(("pool", "may_come_again"), [("prefork", False), ("solo", True)])
def test_longer_than_the_visibility_timeout(
    workers: WorkerFactory, receiver: Receiver, agent: Agent, reviewer: User, pool: str, may_come_again: bool
) -> None:
    """C11, kombu#337, celery#5935, celery#6760; langgraph#7417 and #7213: three times Redis's visibility time-out, and
    seven leases.

    A pool of processes acknowledges before the call. A solo worker's event loop stands still during it, and so does its
    acknowledgement: the message may be delivered again, to the other worker, which finds that the run has an owner.
    """
    extra = {**SETTINGS, "RECEIVER": receiver.url, "VISIBILITY_TIMEOUT": str(BROKER_SECONDS)}
    both = [workers.start(pool=pool, **extra) for _ in range(2)]
    run = start_run(agent=agent, workflow="slow", input=None)
    approved(run, reviewer, receiver)
    wait_for(run, "completed")

    assert len(receiver.calls(str(run.id))) == 1
    head = head_of(run)
    assert (head.deliveries, head.crashes) == (2, 0)  # to the gate, and once on from it
    assert not redelivered(*both) or may_come_again
    assert all(worker.running for worker in both)


@pytest.fixture
def impatient_rabbitmq() -> Iterator[RabbitMQ]:
    """It closes the channel of who leaves a message unacknowledged for longer than `BROKER_SECONDS`."""
    server = RabbitMQ(consumer_timeout=BROKER_SECONDS)
    yield server
    server.remove()


@pytest.mark.services
@pytest.mark.timeout(240)
@pytest.mark.xdist_group("outages")
def test_longer_than_the_consumer_timeout(
    workers: WorkerFactory, impatient_rabbitmq: RabbitMQ, receiver: Receiver, agent: Agent, reviewer: User
) -> None:
    """C11, celery#6760: RabbitMQ's acknowledgement time-out killed the channel, and another worker began anew.

    There are more runs than workers, so that one message at least waits unacknowledged behind a long call.
    """
    extra = {**SETTINGS, "RECEIVER": receiver.url, "CELERY_BROKER_URL": impatient_rabbitmq.url}
    extra["FERMATA_LEASE_SECONDS"] = "15"  # the sweeper would queue a run whose worker a busy machine held up for 2 s
    both = [workers.start(pool="prefork", **extra) for _ in range(2)]
    workers.start_sweeper(**extra)
    runs = [start_run(agent=agent, workflow="slow", input=None) for _ in range(4)]
    for run in runs:
        approved(run, reviewer, receiver)
    for run in runs:
        wait_for(run, "completed", seconds=90)

    assert [len(receiver.calls(str(run.id))) for run in runs] == [1, 1, 1, 1]
    assert {(head_of(run).epoch, head_of(run).crashes) for run in runs} == {(2, 0)}
    assert all(worker.running for worker in both)


def test_longer_than_its_own_deadline(workers: WorkerFactory, receiver: Receiver, agent: Agent, reviewer: User) -> None:
    """langgraph#7417, langgraph#7213: a call that outlives its deadline loses its run and is not dispatched again.

    A person is asked, and is shown the receipt that came too late.
    """
    extra = {**SETTINGS, "RECEIVER": receiver.url}
    both = [workers.start(**extra) for _ in range(2)]
    workers.start_sweeper(**extra)
    run = start_run(agent=agent, workflow="slow/impatient", input=None)
    approved(run, reviewer, receiver)
    wait_for(run, "suspended", reason="in_doubt")
    until(lambda: StepEvidence.objects.filter(run=run).exists(), what="the late receipt is kept")
    assert len(receiver.calls(str(run.id))) == 1

    answer_as_a_person_would(run, reviewer, receiver)
    wait_for(run, "completed")
    assert len(receiver.calls(str(run.id))) == 1
    assert all(worker.running for worker in both)


def test_a_resume_whose_worker_is_killed_is_made_again_soon(
    workers: WorkerFactory, receiver: Receiver, agent: Agent, reviewer: User
) -> None:
    """C12, celery#1628, celery#3541, agent-framework#8575: the pool's child is killed in the middle of a resume.

    Its message is gone, acknowledged; within a lease (2 s here) and a sweep (2 s) another child resumes the run. Nobody
    is asked again, and the other side sees one key.
    """
    point = {"FERMATA_FAILPOINTS": "1", "FERMATA_FAILPOINT": "call.after:kill:2"}  # the approved call is the second
    worker = workers.start(pool="prefork", **SETTINGS, **point, RECEIVER=receiver.url)
    workers.start_sweeper(**SETTINGS, RECEIVER=receiver.url)
    run = start_run(agent=agent, workflow="crash/keyed", input=None)
    approved(run, reviewer, receiver)
    gated = f"{run.id}-gated"
    until(lambda: receiver.calls(gated), what="the approved call")
    wait_for(run, "completed", seconds=40)  # 4 s, and what a busy machine needs

    check(run, "keyed", receiver)
    assert (len(receiver.calls(gated)), receiver.performed(gated)) == (2, 1)
    assert Approval.objects.filter(run=run).count() == 1
    assert worker.running
