"""With a key, nothing that a run was given, did or was told is stored in the clear; a body counts in its place only."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from approvals.gates import require_approval
from approvals.models import Approval
from checkpoints.store.blobs import current_header
from runs.authoring import RunContext, tool, workflow
from runs.bodies import SEALED
from runs.models import Run, RunHead, Step
from runs.services.answering import record_event
from runs.services.controlling import fork_run, retry_run
from runs.services.retention import erase_run
from runs.services.sweeping import sweep
from runs.services.webhooks import draw_webhook, set_webhook
from tests.engine.conftest import Driver
from tests.engine.conftest import driver as driver
from tests.engine.deploys import deployment
from tests.support.cleaning import TABLES

__all__ = ["deployment"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("deployment")]

MARK = "a-mark-that-is-everywhere"
OLD, NEW = {"old": b"o" * 32}, {"new": b"n" * 32, "old": b"o" * 32}


@tool(effect="read", name="test/mark-read")
def read_mark(what: str) -> str:
    return f"read {what}"


@tool(effect="once", name="test/mark-send")
def send_mark(what: str) -> str:
    return f"sent {what}"


@tool(effect="once", name="test/mark-pay", gated=True)
def pay_mark(amount: str) -> str:
    return MARK


@workflow("test/marks")
class Marks:
    """Leaves the mark in every kind of body."""

    def start(self, run: RunContext) -> object:
        run.state["mark"] = [run.step("read", read_mark, MARK), run.step("send", send_mark, run.input["mark"])]
        run.history.append({"mark": MARK})
        run.sleep_until(run.now() + timedelta(hours=1))
        run.state["told"] = run.wait_for_event("go")
        grant = require_approval(run, "pay", tool=pay_mark, args={"amount": "1.00"}, title="Pay")
        return run.complete({"mark": grant.perform(run), "said": grant.message})


@pytest.fixture(autouse=True)
def _registered() -> None:
    workflow("test/marks")(Marks)


def parked(driver: Driver) -> Run:
    """At its gate, past a timer and an event that came early."""
    run = driver.start("test/marks", {"mark": MARK})
    record_event(run_id=run.pk, name="go", payload={"mark": MARK})
    assert driver.go_on(run).reason == "timer"
    RunHead.objects.filter(run=run).update(wake_at="2000-01-01T00:00:00Z")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_gate SET wake_at = '2000-01-01' WHERE run_id = %s AND kind = 'timer'", [run.pk])
    sweep()
    assert driver.go_on(run).reason == "approval"
    return run


def finish(driver: Driver, run: Run) -> None:
    driver.decide(Approval.objects.get(run=run, status="pending"))
    head = driver.go_on(run)
    assert head.status == "completed", head.detail
    assert driver.result(run) == {"mark": MARK, "said": ""}


def holds_mark() -> set[str]:
    """The tables of runs and checkpoints in which the mark stands."""
    found = set()
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            if table.startswith(("runs_", "checkpoints_")):
                cursor.execute(f'SELECT 1 FROM "{table}" t WHERE position(%s IN record_send(t)) > 0', [MARK.encode()])
                found |= {table} if cursor.fetchone() else set()
    return found


def bodies() -> list[tuple[str, bytes]]:
    """Every body outside of the snapshots, with its column."""
    found = []
    with connection.cursor() as cursor:
        for sealed in SEALED:
            cursor.execute(f"SELECT {sealed.column} FROM {sealed.table} WHERE {sealed.column} <> ''")
            found += [(f"{sealed.table}.{sealed.column}", bytes(body)) for (body,) in cursor.fetchall()]
    return found


def evidence(run: Run) -> None:
    step = Step.objects.get(run=run, key="send")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO runs_step_evidence (run_id, turn, key, epoch, outcome) VALUES (%s, 0, 'send', 1, %s)",
            [run.pk, step.outcome],
        )


def test_without_a_key_the_mark_is_there(driver: Driver) -> None:
    """To see that the next test can fail."""
    finish(driver, parked(driver))
    assert holds_mark() >= {"runs_run", "runs_step", "runs_gate", "runs_event"}


def test_with_a_key_nothing_is_in_the_clear(driver: Driver, settings: Any) -> None:
    settings.FERMATA_SNAPSHOT_KEYS = OLD
    settings.FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED = True
    run = parked(driver)
    evidence(run)
    set_webhook(agent=run.agent, url="http://127.0.0.1:9/")
    draw_webhook(agent=run.agent, url="http://127.0.0.1:9/2", new_secret_wanted=True)[0].save()
    fork = fork_run(run_id=run.pk, seq=0, actor="system", acknowledged=True)
    finish(driver, run)
    assert holds_mark() == set()
    stored = bodies()
    assert {column for column, _ in stored} == {f"{sealed.table}.{sealed.column}" for sealed in SEALED}
    assert all(body.startswith(current_header()) for _, body in stored)
    assert driver.go_on(fork).reason == "timer"


def test_keys_are_changed_for_all_of_it(driver: Driver, settings: Any) -> None:
    clear = parked(driver)
    evidence(clear)
    settings.FERMATA_SNAPSHOT_KEYS = OLD
    old = parked(driver)
    gone = parked(driver)
    finish(driver, gone)
    erase_run(run_id=gone.pk, actor="system")

    settings.FERMATA_SNAPSHOT_KEYS = NEW
    out = StringIO()
    call_command("rotate_snapshot_keys", batch=3, stdout=out)
    assert "encrypted under 'new'" in out.getvalue()
    assert all(body.startswith(current_header()) for _, body in bodies())

    settings.FERMATA_SNAPSHOT_KEYS = {"new": NEW["new"]}
    settings.FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED = True
    for run in (clear, old):
        finish(driver, run)


def test_what_cannot_be_opened_blocks_the_run_and_loses_nothing(driver: Driver, settings: Any) -> None:
    settings.FERMATA_SNAPSHOT_KEYS = OLD
    run = parked(driver)
    driver.decide(Approval.objects.get(run=run, status="pending"))
    settings.FERMATA_SNAPSHOT_KEYS = {"new": NEW["new"]}
    head = driver.go_on(run)
    assert head.status == "blocked"
    assert "encrypted under the key 'old'" in head.detail
    settings.FERMATA_SNAPSHOT_KEYS = OLD
    retry_run(run_id=run.pk, actor="system")
    assert driver.go_on(run).status == "completed"


OTHERS = {
    "what step 'send' recorded: outcome: the bytes are not those that were written here": """
        UPDATE runs_step SET outcome = (SELECT outcome FROM runs_step WHERE run_id = %s AND key = 'read')
        WHERE run_id = %s AND key = 'send'
    """,
    "what gate 'pay' was answered: answer: the bytes are not those that were written here": """
        UPDATE runs_gate SET answer = (SELECT payload FROM runs_event WHERE run_id = %s)
        WHERE run_id = %s AND key = 'pay'
    """,
    "cannot rehydrate: input: the bytes are not those that were written here": """
        UPDATE runs_run SET input = (SELECT payload FROM runs_event WHERE run_id = %s) WHERE id = %s
    """,
}


@pytest.mark.parametrize("keys", [{}, OLD])
@pytest.mark.parametrize("reason", OTHERS)
def test_a_body_counts_only_in_its_place(driver: Driver, settings: Any, keys: dict[str, bytes], reason: str) -> None:
    settings.FERMATA_SNAPSHOT_KEYS = keys
    run = parked(driver)
    driver.decide(Approval.objects.get(run=run, status="pending"))
    with connection.cursor() as cursor:
        cursor.execute(OTHERS[reason], [run.pk, run.pk])
    head = driver.go_on(run)
    assert head.status == "blocked"
    assert reason in head.detail
