"""What is kept for how long: old checkpoints go, nothing that is needed goes with them, and an erased run says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from approvals.models import Approval, AuditBody, AuditEvent
from approvals.services.voting import vote
from checkpoints import store
from checkpoints.models import Checkpoint, HistoryChunk, StatePart
from fermata.celery import app
from runs.authoring import RunContext, workflow
from runs.engine import draining
from runs.engine.executor import execute
from runs.errors import WrongState
from runs.models import Agent, Draft, Gate, OutsideEvent, Run, RunHead, Step, StepEvidence
from runs.services.answering import record_event
from runs.services.controlling import fork_run, retry_run
from runs.services.retention import Kept, apply_retention, erase_run, prune_run
from runs.services.starting import start_run
from runs.tasks import prune as nightly
from tests.engine.deploys import deployment
from tests.engine.flows import SWITCH
from tests.support.api import as_agent, in_browser, suspension
from tests.support.cleaning import LEFT_ALONE, TABLES

__all__ = ["deployment"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("deployment")]

FUTURE = datetime(2999, 1, 1, tzinfo=UTC)
MARK = "a-mark-that-only-this-run-has"


@workflow("test/long")
class Long:
    """Ten phases, then a wait, then two more."""

    def start(self, run: RunContext) -> object:
        run.state["n"] = run.state.get("n", 0) + 1
        run.state["half"] = run.state["n"] // 5
        run.history.append({"n": run.state["n"]})
        return self.start if run.state["n"] < 10 else self.wait

    def wait(self, run: RunContext) -> object:
        run.state["said"] = run.wait_for_event("go")
        return self.end

    def end(self, run: RunContext) -> object:
        return run.complete({"n": run.state["n"], "history": len(run.history), "said": run.state["said"]})


@pytest.fixture(autouse=True)
def _switches_off() -> None:
    SWITCH.clear()
    workflow("test/long")(Long)


def parked(agent: Agent) -> Run:
    run = start_run(agent=agent, workflow="test/long", input={"mark": MARK})
    execute(run.pk, worker="test")
    assert RunHead.objects.get(run=run).reason == "event"
    return run


def finished(agent: Agent) -> Run:
    run = parked(agent)
    record_event(run_id=run.pk, name="go", payload={"mark": MARK})
    execute(run.pk, worker="test")
    run.refresh_from_db()
    assert run.head.status == "completed"
    return run


def kept(run: Run) -> list[int]:
    return list(Checkpoint.objects.filter(run_id=run.pk).order_by("seq").values_list("seq", flat=True))


def load(run: Run, seq: int | None = None) -> Any:
    with connection.cursor() as cursor:
        return store.load(cursor, run_id=run.pk, seq=seq)[0]


def holds(text: str) -> set[str]:
    """The tables in which `text` stands somewhere."""
    found = set()
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            if table not in LEFT_ALONE and not table.startswith("seed_"):
                cursor.execute(f'SELECT 1 FROM "{table}" t WHERE position(%s IN record_send(t)) > 0', [text.encode()])
                found |= {table} if cursor.fetchone() else set()
    return found


# --- pruning ---------------------------------------------------------------------------------------------------


def test_by_default_everything_is_kept(agent: Agent, move_clock: Callable[[timedelta], None]) -> None:
    run = finished(agent)
    move_clock(timedelta(days=10_000))
    assert apply_retention() == Kept(checkpoints=0, runs=0, posts=0)
    assert len(kept(run)) == run.head.head_seq + 1


def test_old_checkpoints_go_but_for_the_newest(
    agent: Agent, settings: Any, move_clock: Callable[[timedelta], None]
) -> None:
    settings.FERMATA_KEEP_CHECKPOINTS, settings.FERMATA_KEEP_CHECKPOINTS_DAYS = 3, 30
    run = parked(agent)
    before = [load(run, seq) for seq in (8, 9, 10)]
    move_clock(timedelta(days=29))
    assert apply_retention().checkpoints == 0
    move_clock(timedelta(days=2))
    assert apply_retention().checkpoints == 8
    assert kept(run) == [8, 9, 10]
    assert [load(run, seq) for seq in (8, 9, 10)] == before
    assert apply_retention().checkpoints == 0


def test_a_parked_run_goes_on_to_the_same_end(agent: Agent) -> None:
    run = parked(agent)
    prune_run(run_id=run.pk, keep=1, older_than=FUTURE)
    assert kept(run) == [10]
    record_event(run_id=run.pk, name="go", payload="on")
    execute(run.pk, worker="test")
    run.refresh_from_db()
    assert run.head.status == "completed", run.error
    assert load(run).history == tuple({"n": n} for n in range(1, 11))
    prune_run(run_id=run.pk, keep=1, older_than=FUTURE)
    assert load(run).state == {"n": 10, "half": 2, "said": "on"}


def test_what_a_fork_came_from_stays(agent: Agent) -> None:
    run = parked(agent)
    forks = [fork_run(run_id=run.pk, seq=seq, actor="system", acknowledged=True) for seq in (0, 4)]
    prune_run(run_id=run.pk, keep=1, older_than=FUTURE)
    assert kept(run) == [0, 4, 10]
    for fork in forks:
        execute(fork.pk, worker="test")
        assert RunHead.objects.get(run=fork).reason == "event"


def test_an_open_approval_is_shown_with_its_snapshot(agent: Agent, reviewer: User) -> None:
    run = start_run(agent=agent, workflow="test/gate", input=None)
    execute(run.pk, worker="test")
    approval = Approval.objects.get(run=run)
    card = f"http://testserver/approvals/{approval.pk}/"
    before = in_browser(reviewer).get(card).content.decode()
    assert "may I?" in before
    prune_run(run_id=run.pk, keep=1, older_than=FUTURE)
    assert "may I?" in in_browser(reviewer).get(card).content.decode()
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)
    execute(run.pk, worker="test")
    assert RunHead.objects.get(run=run).status == "completed"


def test_the_pages_lead_from_one_kept_checkpoint_to_the_next(agent: Agent, reviewer: User) -> None:
    run = parked(agent)
    fork_run(run_id=run.pk, seq=4, actor="system", acknowledged=True)
    prune_run(run_id=run.pk, keep=2, older_than=FUTURE)
    assert kept(run) == [4, 9, 10]
    page = in_browser(reviewer).get(f"http://testserver/runs/{run.pk}/checkpoints/9/").content.decode()
    assert "Changed since checkpoint 4" in page
    assert f"/runs/{run.pk}/checkpoints/4/" in page
    assert f"/runs/{run.pk}/checkpoints/10/" in page
    first = in_browser(reviewer).get(f"http://testserver/runs/{run.pk}/checkpoints/4/").content.decode()
    assert "Changed since" not in first
    gone = in_browser(reviewer).get(f"http://testserver/runs/{run.pk}/checkpoints/5/")
    assert gone.status_code == 404


def test_a_process_that_is_to_stop_stops(agent: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.FERMATA_KEEP_CHECKPOINTS, settings.FERMATA_KEEP_CHECKPOINTS_DAYS = 1, 0
    run = parked(agent)
    monkeypatch.setattr("runs.services.retention.is_draining", lambda: True)
    assert apply_retention() == Kept(checkpoints=0, runs=0, posts=0)
    monkeypatch.setattr("runs.services.retention.is_draining", draining.is_draining)
    nightly()
    assert kept(run) == [10]


def test_it_happens_every_night() -> None:
    entry = app.conf.beat_schedule["prune"]
    assert entry["task"] in app.tasks
    assert entry["schedule"].hour == {3}


# --- erasing ---------------------------------------------------------------------------------------------------


def test_an_erased_run_holds_nothing_of_what_it_held(agent: Agent) -> None:
    run = finished(agent)
    step = {"turn": 0, "phase": "start", "tool": "test/send", "effect": "keyed", "args_hash": bytes(32), "epoch": 1}
    Step.objects.create(run=run, key="s", ordinal=0, state="done", outcome=MARK.encode(), build="x", **step)
    StepEvidence.objects.create(run=run, turn=0, key="s", epoch=1, outcome=MARK.encode())
    Draft.objects.filter(run=run).update(body=MARK.encode())
    Run.objects.filter(pk=run.pk).update(error=MARK, traceback=MARK)
    assert len(holds(MARK)) > 5

    assert erase_run(run_id=run.pk, actor="system") is True
    assert holds(MARK) == set()
    for model in (Checkpoint, StatePart, HistoryChunk):
        assert not model.objects.filter(run_id=run.pk).exists()
    run.refresh_from_db()
    assert run.erased_at is not None
    assert run.head.status == "completed"
    assert erase_run(run_id=run.pk, actor="system") is False


@workflow("test/says-it")
class SaysIt:
    def start(self, run: RunContext) -> object:
        raise ValueError(run.input["mark"])


def test_what_a_failed_run_said_is_in_no_trail_that_cannot_be_erased(agent: Agent, reviewer: User) -> None:
    workflow("test/says-it")(SaysIt)
    hosted = start_run(agent=agent, workflow="test/says-it", input={"mark": MARK})
    execute(hosted.pk, worker="test")
    calls = as_agent(agent)
    outside = calls.post("/suspensions", suspension()).json()["run"]["id"]
    approval = Approval.objects.get()
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)
    assert calls.post(f"/runs/{outside}/finish", {"error": f"no account {MARK}"}).status_code == 200
    assert set(RunHead.objects.values_list("status", flat=True)) == {"failed"}
    assert holds(MARK) >= {"runs_run"}

    for run_id in (hosted.pk, approval.run_id):
        erase_run(run_id=run_id, actor="system")
    assert holds(MARK) == set()
    said = list(AuditBody.objects.filter(event__type="run.finished").order_by("pk").values_list("body", flat=True))
    assert ['"error":"ValueError"' in said[0], '"error":"AgentError"' in said[1]] == [True, True]


def test_the_audit_trail_says_so_and_still_holds(agent: Agent) -> None:
    run = finished(agent)
    erase_run(run_id=run.pk, actor="person:7")
    event = AuditEvent.objects.get(type="snapshots.erased")
    assert (event.chain, event.actor) == (f"run:{run.pk}", "person:7")
    body = AuditBody.objects.get(event=event).body
    assert '"erased":{"checkpoints":13,"events":1,"gates":1,"steps":0}' in body
    call_command("verify_audit", stdout=StringIO())


def test_its_page_and_its_answers_say_so(agent: Agent, reviewer: User) -> None:
    run = finished(agent)
    erase_run(run_id=run.pk, actor="system")
    page = in_browser(reviewer).get(f"http://testserver/runs/{run.pk}/")
    assert page.status_code == 200
    assert "was erased" in page.content.decode()
    assert "Fork" not in page.content.decode()
    assert in_browser(reviewer).get(f"http://testserver/runs/{run.pk}/history/").status_code == 200
    calls = as_agent(agent)
    answer = calls.get(f"/runs/{run.pk}").json()
    assert (answer["status"], answer["result"]) == ("completed", None)
    assert answer["erased_at"] is not None
    assert calls.get(f"/runs/{run.pk}/snapshot").status_code == 404
    assert calls.get(f"/runs/{run.pk}/checkpoints").json()["results"] == []
    assert calls.get(f"/runs/{run.pk}/timeline").status_code == 200
    assert calls.post(f"/runs/{run.pk}/fork", {"checkpoint": 0, "acknowledge_effects": True}).status_code == 404


def test_a_decided_card_of_an_erased_run_can_be_looked_at(agent: Agent, reviewer: User) -> None:
    calls = as_agent(agent)
    run_id = calls.post("/suspensions", suspension()).json()["run"]["id"]
    approval = Approval.objects.get()
    vote(approval_id=approval.pk, voter=reviewer, verdict="reject", review=approval.review)
    calls.post(f"/runs/{run_id}/finish", {"result": {"mark": MARK}})
    erase_run(run_id=approval.run_id, actor="system")
    card = in_browser(reviewer).get(f"http://testserver/approvals/{approval.pk}/")
    assert card.status_code == 200
    assert "not kept any more" in card.content.decode()
    assert MARK not in card.content.decode()


def test_only_what_has_ended_is_erased(agent: Agent) -> None:
    run = parked(agent)
    with pytest.raises(WrongState, match="erased before it has ended"):
        erase_run(run_id=run.pk, actor="system")
    assert kept(run)


def test_an_erased_failure_is_not_retried(agent: Agent) -> None:
    SWITCH["send"] = "refuse"
    run = start_run(agent=agent, workflow="test/steps", input=None)
    execute(run.pk, worker="test")
    assert RunHead.objects.get(run=run).status == "failed"
    erase_run(run_id=run.pk, actor="system")
    with pytest.raises(WrongState, match="its content was erased"):
        retry_run(run_id=run.pk, actor="system")


def test_the_settings_erase_by_status_and_age(
    agent: Agent, settings: Any, move_clock: Callable[[timedelta], None]
) -> None:
    done, waiting = finished(agent), parked(agent)
    SWITCH["send"] = "refuse"
    failed = start_run(agent=agent, workflow="test/steps", input=None)
    execute(failed.pk, worker="test")

    settings.FERMATA_KEEP_FINISHED_RUNS_DAYS = 30
    move_clock(timedelta(days=31))
    assert apply_retention().runs == 1
    assert set(Run.objects.exclude(erased_at=None)) == {done}

    settings.FERMATA_KEEP_FAILED_RUNS_DAYS = 60
    assert apply_retention().runs == 0
    move_clock(timedelta(days=30))
    assert apply_retention().runs == 1
    assert set(Run.objects.filter(erased_at=None)) == {waiting}
    assert apply_retention().runs == 0


# --- by hand ---------------------------------------------------------------------------------------------------


def said(*command: str) -> str:
    out = StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def test_the_commands(agent: Agent, settings: Any) -> None:
    run = finished(agent)
    fork = fork_run(run_id=run.pk, seq=3, actor="system", acknowledged=True)
    settings.FERMATA_KEEP_CHECKPOINTS, settings.FERMATA_KEEP_CHECKPOINTS_DAYS = 1, 0
    assert said("prune") == "10 checkpoints and 0 posts pruned, 0 runs erased.\n"
    assert said("erase_run", str(run.pk)) == (f"{run.pk} is erased.\nIts fork {fork.pk} keeps what it started with.\n")
    assert said("erase_run", str(run.pk)).startswith(f"{run.pk} was erased before.")
    with pytest.raises(CommandError, match="there is no run"):
        said("erase_run", str(uuid4()))
    with pytest.raises(CommandError, match="cannot be erased before it has ended"):
        said("erase_run", str(fork.pk))
    assert Gate.objects.filter(run=run, answer=b"").exists()
    assert OutsideEvent.objects.filter(run=run, payload=b"").exists()
