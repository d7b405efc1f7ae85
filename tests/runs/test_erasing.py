"""A marked word in everything that people, agents and code write about a run: erased, it stands in no table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO, StringIO
from typing import Any
from uuid import uuid4

import pytest
import zstandard
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.db.utils import IntegrityError

from approvals.audit.erasing import erase_bodies
from approvals.models import Approval, AuditBody, Decision, Revision
from approvals.services.cancelling import cancel
from approvals.services.doubt import resolve_in_doubt
from approvals.services.grants import revoke
from checkpoints import codec
from runs.bodies import draft_place, outcome_place, seal
from runs.clock import database_now
from runs.hooks import hooks
from runs.models import Agent, Draft, Run, RunHead, StepEvidence, WebhookPost
from runs.principals import Person
from runs.services.controlling import cancel_run
from runs.services.refusals import note_refusal
from runs.services.retention import erase_run
from tests.approvals.scenes import ask, cast, in_doubt, open_on, opened
from tests.support.api import as_agent, in_browser, suspension
from tests.support.cleaning import LEFT_ALONE, TABLES

pytestmark = pytest.mark.django_db(transaction=True)

MARK = "Quisquilia"
LONG = f"{'as it was said. ' * 400}{MARK}"  # compressed, wherever that is done
ZSTD = b"\x28\xb5\x2f\xfd"
COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = %s"


def texts(value: Any) -> Iterator[bytes]:
    """What a column's value says: bytes as they are, and decompressed where compressed bytes begin in them."""
    if not isinstance(value, bytes | memoryview):
        yield str(value).encode()
        return
    data = bytes(value)
    yield data
    start = data.find(ZSTD)
    while start >= 0:
        yield zstandard.ZstdDecompressor().stream_reader(BytesIO(data[start:]), read_across_frames=False).read()
        start = data.find(ZSTD, start + 1)


def holding(word: str = MARK) -> set[str]:
    """The columns, of all tables, in which the word stands."""
    found = set()
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            if table in LEFT_ALONE or table.startswith("seed_"):
                continue
            cursor.execute(COLUMNS, [table])
            for (column,) in cursor.fetchall():
                cursor.execute(f'SELECT "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL')
                if any(word.encode() in text for (value,) in cursor.fetchall() for text in texts(value)):
                    found.add(f"{table}.{column}")
    return found


def lived_outside(agent: Agent, reviewer: User, operator: User) -> Run:
    """An agent's own run: everything that it posts, and all that people say about it."""
    calls = as_agent(agent)
    body = suspension(
        args={"note": LONG},
        title=f"Pay {MARK}",
        description=LONG,
        args_schema={"description": MARK, "type": "object"},
        allowed=["approve", "edit", "reject", "respond"],
    )
    first = body["approvals"][0]
    body["approvals"] = [
        {**first, "key": key} for key in ("edited", "rejected", "answered", "revoked", "cancelled", "open")
    ]
    body["run"] = {"external_id": f"order-{MARK}", "title": f"Run of {MARK}"}
    body["snapshot"] |= {"state": {"who": LONG}, "history": [{"role": "user", "content": LONG}]}
    body["snapshot"] |= {"position": {"at": LONG}, "pending": [{"call": LONG}]}
    answer = calls.post("/suspensions", body, Idempotency_Key="park")
    assert answer.status_code == 201, answer.content
    run = Run.objects.get(pk=answer.json()["run"]["id"])
    asked = {approval.key: approval for approval in Approval.objects.filter(run=run)}
    cast(asked["edited"], reviewer, "edit", args=f'{{"note":"another {MARK}"}}', message=f"because {MARK}")
    cast(asked["rejected"], reviewer, "reject", message=f"no, {MARK}")
    cast(asked["answered"], reviewer, "respond", message=f"it is {MARK}")
    cast(asked["revoked"], reviewer, message=f"well, {MARK}")
    revoke(approval_id=asked["revoked"].pk, by=Person(reviewer), reason=f"after all, {MARK}")
    cancel(approval_id=asked["cancelled"].pk, by=Person(operator), reason=f"not needed, {MARK}")
    note_refusal(run_id=run.pk, by=Person(operator), attempt="claim", reason=f"not yours: {MARK}")
    with transaction.atomic(), connection.cursor() as cursor:
        body = {"why": f"cannot rehydrate: {MARK}"}
        hooks().record(cursor, run_id=run.pk, team_id=run.team_id, type="run.blocked", actor="worker", body=body)
    Draft.objects.create(run=run, seq=0, body=seal(codec.encode(LONG, path="draft"), draft_place(run.pk, 0)))
    late = seal(codec.encode(LONG, path="outcome"), outcome_place(run.pk, 0, "edited"))
    StepEvidence.objects.create(run=run, turn=0, key="edited", epoch=1, outcome=late)
    now = database_now()
    WebhookPost.objects.create(
        agent=agent, run=run, sequence=1, type="run.ready", checkpoint=0, created_at=now, next_attempt_at=now,
        gives_up_at=now, state="given_up", settled_at=now, last_error=f"its certificate names {MARK}",
    )  # fmt: skip
    cancel_run(run_id=run.pk, actor=f"person:{operator.pk}", reason=f"enough of {MARK}")
    Run.objects.filter(pk=run.pk).update(traceback=LONG)
    RunHead.objects.filter(run=run).update(detail=f"waits at {MARK}")
    return run


def lived_in_doubt(agent: Agent, reviewer: User) -> Run:
    """A call whose outcome its agent reported, and one of which nobody knew until somebody said what came of it."""
    calls = as_agent(agent)
    body = suspension(args={"note": MARK})
    body["run"]["title"] = "Plain"
    run = Run.objects.get(pk=calls.post("/suspensions", body).json()["run"]["id"])
    approval = Approval.objects.get(run=run)
    cast(approval, reviewer)
    path = f"/approvals/{approval.pk}"
    assert calls.post(f"{path}/consume", {}, Idempotency_Key="spend").status_code == 200
    reported = calls.post(f"{path}/outcome", {"status": "succeeded", "result": {"receipt": MARK}})
    assert reported.status_code == 200, reported.content
    (unknown,) = open_on(run, ask("call_2"))
    doubted = in_doubt(cast(unknown, reviewer))
    resolve_in_doubt(
        approval_id=doubted.pk, person=reviewer, answer="happened", review=doubted.review,
        outcome={"receipt": MARK}, message=f"I saw {MARK}",
    )  # fmt: skip
    cancel_run(run_id=run.pk, actor=f"agent:{agent.pk}")
    return run


def start() -> dict[str, Any]:
    return {"workflow": "refund-agent", "input": {"order_id": LONG, "amount": "1"}, "title": f"Nightly {MARK}"}


def lived_here(agent: Agent) -> Run:
    """A hosted run: its input, and its title in the answer that was kept."""
    answer = as_agent(agent).post("/runs", start(), Idempotency_Key="start")
    assert answer.status_code == 201, answer.content
    run = Run.objects.get(pk=answer.json()["id"])
    cancel_run(run_id=run.pk, actor="system", reason=f"on the command line, {MARK}")
    return run


EVIDENCE = {
    "approvals_approval.title",
    "approvals_approval.description",
    "approvals_approval.args",
    "approvals_approval.args_schema",
    "approvals_revision.args",
    "approvals_revision.diff",
    "approvals_vote.message",
    "approvals_decision.args",
    "approvals_decision.message",
    "approvals_grant.args",
    "approvals_grant.outcome",
    "approvals_auditbody.body",
}
CONTENT = {
    "checkpoints_statepart.body",
    "checkpoints_historychunk.body",
    "checkpoints_checkpoint.body",
    "runs_run.title",
    "runs_run.external_id",
    "runs_run.input",
    "runs_run.error",
    "runs_run.traceback",
    "runs_head.detail",
    "runs_gate.answer",
    "runs_step.outcome",
    "runs_step_evidence.outcome",
    "runs_draft.body",
    "runs_webhook_post.last_error",
    "runs_idempotent_request.body",
}


@pytest.fixture
def lives(agent: Agent, reviewer: User, person: Callable[..., User]) -> list[Run]:
    operator = person("olga", "operator")
    return [lived_outside(agent, reviewer, operator), lived_in_doubt(agent, reviewer), lived_here(agent)]


def erase(lives: list[Run], *, approvals: bool) -> list[bool]:
    return [erase_run(run_id=run.pk, actor="system", approvals=approvals) for run in lives]


def test_nothing_of_a_run_is_left_in_any_table(lives: list[Run], agent: Agent, reviewer: User) -> None:
    assert holding() == CONTENT | EVIDENCE

    assert erase(lives, approvals=False) == [True] * 3
    assert holding() == EVIDENCE
    trail = AuditBody.objects.filter(body__contains=MARK)
    assert not trail.filter(event__chain__startswith="run:").exists()
    assert erase(lives, approvals=False) == [False] * 3

    assert erase(lives, approvals=True)[:2] == [True, True]
    assert holding() == set()
    assert erase(lives, approvals=True) == [False] * 3
    call_command("verify_audit", stdout=StringIO())
    run_ids = AuditBody.objects.filter(event__type="audit.erased").values_list("body", flat=True)
    assert all(any(str(run.pk) in body for body in run_ids) for run in lives)


def test_what_is_left_can_be_looked_at(lives: list[Run], agent: Agent, reviewer: User) -> None:
    erase(lives, approvals=True)
    pages, calls = in_browser(reviewer), as_agent(agent)
    for run in lives:
        page = pages.get(f"http://testserver/runs/{run.pk}/")
        assert (page.status_code, "Erased run" in page.content.decode()) == (200, True)
        assert pages.get(f"http://testserver/audit/?run={run.pk}").status_code == 200
    for approval in Approval.objects.all():
        page = pages.get(f"http://testserver/approvals/{approval.pk}/")
        assert (page.status_code, "Erased" in page.content.decode()) == (200, True)
        assert calls.get(f"/approvals/{approval.pk}").json()["args"] == {"erased": True}
        assert pages.get(f"http://testserver/audit/?approval={approval.pk}").status_code == 200
    assert pages.get("http://testserver/?tab=history").status_code == 200
    again = calls.post("/runs", start(), Idempotency_Key="start")
    assert (again.status_code, again.json()) == (201, {"erased": True})
    assert Run.objects.count() == 3


def test_erasing_a_person_reaches_what_they_said_of_a_run(lives: list[Run], reviewer: User) -> None:
    for person in (reviewer, User.objects.get(username="olga")):
        erase_bodies(person_id=person.pk, by="system")
    words = AuditBody.objects.filter(body__contains=MARK).values_list("event__type", "event__actor")
    assert {(type, actor.partition(":")[0]) for type, actor in words if type != "attempt.refused"} <= {
        ("approval.requested", "agent"),
        ("run.started", "agent"),
        ("run.blocked", "worker"),
        ("run.cancelled", "system"),
        ("grant.spent", "agent"),
        ("grant.outcome", "agent"),
        ("step.in_doubt", "system"),
    }


def test_only_an_erased_run_lets_its_evidence_go(lives: list[Run]) -> None:
    decision = Decision.objects.filter(message__contains=MARK).first()
    assert decision is not None
    erase_run(run_id=decision.approval.run_id, actor="system")
    for change in ({"message": "something else"}, {"outcome": "expired"}, {"revision": 7}, {"args": "{}"}):
        with pytest.raises(IntegrityError, match="never change"), transaction.atomic():
            Decision.objects.filter(pk=decision.pk).update(**change)
    other = Revision.objects.exclude(approval__run=decision.approval.run_id).first()
    assert other is not None
    with pytest.raises(IntegrityError, match="never change"), transaction.atomic():
        Revision.objects.filter(pk=other.pk).update(args='{"erased":true}')
    # Whoever may write runs says that one is erased; the trail, which only grows, does not.
    Run.objects.filter(pk=other.approval.run_id).update(erased_at=database_now())
    with pytest.raises(IntegrityError, match="never change"), transaction.atomic():
        Revision.objects.filter(pk=other.pk).update(args='{"erased":true}')


def test_arguments_that_look_erased_do_not_keep_the_rest(agent: Agent) -> None:
    card = opened(agent, args={"erased": True}, title=f"About {MARK}")
    cancel_run(run_id=card.run_id, actor="system")
    assert erase_run(run_id=card.run_id, actor="system", approvals=True)
    assert holding() == set()
    assert not erase_run(run_id=card.run_id, actor="system", approvals=True)


def test_a_role_that_may_not_erase_the_trail_erases_the_rest(
    lives: list[Run], caplog: pytest.LogCaptureFixture
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        (owner,) = cursor.fetchone()
        role = f"fermata_{uuid4().hex}"
        cursor.execute(f"CREATE ROLE {role}; GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        cursor.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}")
        cursor.execute(f"REVOKE UPDATE, DELETE ON approvals_auditbody FROM {role}; SET ROLE {role}")
        try:
            erase(lives, approvals=True)
        finally:
            cursor.execute(f'SET ROLE "{owner}"; DROP OWNED BY {role}; DROP ROLE {role}')
    assert holding() == {"approvals_auditbody.body"}
    assert "from which this database role may not erase" in caplog.text
    assert erase(lives, approvals=True) == [True] * 3
    assert holding() == set()
