"""What ends with a run is void in the statement that ends it, whoever is at it meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from django.db import connection, transaction

from approvals import canonical
from approvals.audit.hashing import body_commit
from approvals.models import Approval, AuditEvent, Grant
from approvals.services.conclusion import conclude
from approvals.states import ApprovalStatus
from runs.engine.connection import connect, engine_connection
from runs.engine.finishing import Ending, finish
from runs.engine.ownership import Ownership
from runs.models import Agent, Run, RunHead
from runs.services.locking import lock_run
from tests.approvals.scenes import ask, events, open_on
from tests.engine.conftest import Driver, driver
from tests.races.test_fences import claimed
from tests.support.waiting import until

__all__ = ["driver"]

pytestmark = pytest.mark.django_db(transaction=True)

WAITING = """
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%runs_head%'
"""


@contextmanager
def ending(own: Ownership) -> Iterator[None]:
    """The run ends, in a thread, which is waited for."""

    def end() -> None:
        own.connection = engine_connection()
        finish(own, Ending.completed(b"\xc0"))
        own.connection.close()

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(end)
        yield
    ended.result()


def somebody_waits() -> bool:
    """Asked on a connection of its own: a transaction sees no others than at its first look."""
    with connect() as other:
        return other.execute(WAITING).fetchone() is not None


def asked(own: Ownership) -> Approval:
    return open_on(Run.objects.select_related("agent").get(pk=own.run_id), ask())[0]


def test_what_nobody_used_is_void_and_each_of_it_on_record(driver: Driver) -> None:
    run = driver.start("test/three-gates")
    for _ in range(3):
        driver.go_on(run)
        driver.decide(driver.pending(run)[f"gate{1 + Grant.objects.count()}"])
    assert driver.go_on(run).status == "completed"

    assert [grant.status for grant in Grant.objects.all()] == ["void"] * 3
    said = AuditEvent.objects.filter(type="grant.voided").select_related("content").order_by("id")
    assert {event.chain for event in said} == {f"approval:{approval.pk}" for approval in Approval.objects.all()}
    assert len({bytes(event.content.salt) for event in said}) == 3
    for event in said:
        approval_id = event.chain.removeprefix("approval:")
        assert event.content.body == canonical.dumps(
            {"approval": approval_id, "message": "the run completed", "run": str(run.pk)}
        )
        assert body_commit(bytes(event.content.salt), event.content.body) == bytes(event.body_commit)
    assert AuditEvent.objects.filter(chain=f"run:{run.pk}", type="run.finished").count() == 1


def test_what_is_open_is_cancelled(agent: Agent) -> None:
    own = claimed(agent)
    approval = asked(own)

    finish(own, Ending.failed("ValueError", "no", ""))

    assert RunHead.objects.get(pk=own.run_id).status == "failed"
    assert events(approval) == ["approval.requested", "approval.cancelled"]
    assert AuditEvent.objects.filter(chain=f"run:{own.run_id}", type="run.finished").count() == 1


def test_a_decision_that_commits_meanwhile_leaves_nothing_to_be_used(agent: Agent) -> None:
    own = claimed(agent)
    approval = asked(own)

    with ExitStack() as stack, transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, own.run_id)
        conclude(cursor, approval_id=approval.pk, outcome=ApprovalStatus.APPROVED, actor="system")
        stack.enter_context(ending(own))
        until(somebody_waits, what="a run that ends, waiting for the decision")

    assert RunHead.objects.get(pk=own.run_id).status == "completed"
    assert Grant.objects.get(approval=approval).status == "void"
    assert events(approval)[-1] == "grant.voided"


@pytest.mark.parametrize(
    ("meanwhile", "left", "said"),
    [
        ("UPDATE approvals_grant SET status = 'revoked' WHERE approval_id = %(approval)s", "revoked", 0),
        ("UPDATE runs_head SET lease = lease + interval '1 s' WHERE run_id = %(run)s", "void", 1),
    ],
    ids=["revoked", "lease extended"],
)
def test_what_changes_between_its_snapshot_and_its_lock(agent: Agent, meanwhile: str, left: str, said: int) -> None:
    own = claimed(agent)
    approval = asked(own)
    with own.held() as held:
        conclude(held, approval_id=approval.pk, outcome=ApprovalStatus.APPROVED, actor="system")

    with ExitStack() as stack, transaction.atomic(), connection.cursor() as cursor:
        lock_run(cursor, own.run_id)
        stack.enter_context(ending(own))
        until(somebody_waits, what="a run that ends, waiting for the lock")
        cursor.execute(meanwhile, {"approval": approval.pk, "run": own.run_id})

    assert RunHead.objects.get(pk=own.run_id).status == "completed"
    assert Grant.objects.get(approval=approval).status == left
    assert events(approval).count("grant.voided") == said
    assert AuditEvent.objects.filter(chain=f"run:{own.run_id}", type="run.finished").count() == 1


def test_nobody_keeps_the_run_locked_by_keeping_its_chain(agent: Agent) -> None:
    """Else whoever is stopped with the lock of a chain stops the sweeper too, which takes the run's lock."""
    own = claimed(agent)
    with ExitStack() as stack, connect() as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (f"run:{own.run_id}",))
        stack.enter_context(ending(own))
        again = RunHead.objects.filter(pk=own.run_id, epoch__gt=own.epoch)
        until(again.exists, what="a worker that gave up waiting, and begins again")
    assert RunHead.objects.get(pk=own.run_id).status == "completed"
