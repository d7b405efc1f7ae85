"""What an agent posts with a credential in it: refused with its place, or stored redacted, as the agent is set up."""

import json
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from approvals import canonical
from approvals.models import Approval, AuditBody, AuditEvent, Grant
from approvals.services.voting import vote
from checkpoints import store
from checkpoints.credentials import rules
from runs.models import Agent, Gate, Run
from tests.checkpoints.credentials.samples import SAMPLES, letters
from tests.support.api import as_agent, as_person, pointers, suspension
from tests.support.cleaning import LEFT_ALONE, TABLES

pytestmark = pytest.mark.django_db

TOKEN = SAMPLES["github-token"]
HIDDEN = "[redacted: github-token]"


@pytest.fixture
def redacting(agent: Agent) -> Agent:
    agent.on_credentials = "redact"
    agent.save(update_fields=["on_credentials"])
    return agent


def with_snapshot(**parts: Any) -> dict[str, Any]:
    asked = suspension()
    asked["snapshot"] |= parts
    return asked


def saved(run_id: str) -> Any:
    with connection.cursor() as cursor:
        return store.load(cursor, run_id=UUID(run_id))[0]


def is_nowhere(text: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            if table in LEFT_ALONE or table.startswith("seed_"):
                continue
            cursor.execute(
                f'SELECT count(*) FROM "{table}" t WHERE position(%s IN record_send(t)) > 0', [text.encode()]
            )
            if cursor.fetchone()[0]:
                return False
    return True


@pytest.mark.parametrize(
    ("parts", "pointer"),
    [
        ({"state": {"tool": {"args": ["ok", TOKEN]}}}, "#/snapshot/state/tool/args/1"),
        ({"state": {'odd "key"/é': {"a.b": TOKEN}}}, '#/snapshot/state/odd "key"~1é/a.b'),
        ({"state": {"a": {TOKEN: 1}}}, "#/snapshot/state/a"),
        ({"history": [{"role": "user"}, {"content": f"It printed {TOKEN}."}]}, "#/snapshot/history/1/content"),
        ({"position": {"at": [TOKEN]}}, "#/snapshot/position/at/0"),
        ({"pending": [{"args": {"header": TOKEN}}]}, "#/snapshot/pending/0/args/header"),
    ],
)
def test_a_snapshot_is_refused_with_its_place_and_rule(agent: Agent, parts: dict[str, Any], pointer: str) -> None:
    response = as_agent(agent).post("/suspensions", with_snapshot(**parts))

    problem = response.json()
    assert (response.status_code, problem["code"], problem["rule"]) == (400, "holds_credential", "github-token")
    assert pointers(response) == {pointer}
    assert "looks like a credential (github-token): send a reference" in problem["errors"][0]["detail"].lower()
    assert TOKEN not in response.content.decode()
    assert not Run.objects.exists()


@pytest.mark.parametrize("rule", SAMPLES)
def test_every_kind_is_refused_everywhere(agent: Agent, rule: str) -> None:
    calls = as_agent(agent)
    secret = SAMPLES[rule]
    for asked in (with_snapshot(state={"a": secret}), suspension(args={"a": [secret]})):
        response = calls.post("/suspensions", asked)
        assert response.status_code == 400
        assert rule in response.content.decode()
        assert secret not in json.dumps(response.json())


def test_an_input_and_a_result_are_refused_too(agent: Agent) -> None:
    calls = as_agent(agent)
    started = calls.post("/runs", {"workflow": "refund-agent", "input": {"db": {"password": letters(20)}}})
    assert (started.status_code, pointers(started)) == (400, {"#/input/db/password"})
    assert started.json()["rule"] == "named-secret"

    run = calls.post("/suspensions", suspension()).json()["run"]
    ended = calls.post(f"/runs/{run['id']}/finish", {"result": [TOKEN]})
    assert (ended.status_code, pointers(ended)) == (400, {"#/result/0"})
    told = calls.post(f"/runs/{run['id']}/events/go", {"payload": {"a": TOKEN}})
    assert (told.status_code, pointers(told)) == (400, {"#/payload/a"})


def test_an_agent_can_be_set_up_to_redact(redacting: Agent) -> None:
    calls = as_agent(redacting)
    asked = with_snapshot(
        state={"note": f"It printed {TOKEN}.", "n": 1},
        history=[{"content": TOKEN}],
        position=[TOKEN],
        pending=[{"header": TOKEN}],
    )
    run = calls.post("/suspensions", asked).json()["run"]

    snapshot = calls.get(f"/runs/{run['id']}/snapshot").json()
    assert snapshot["state"] == {"note": f"It printed {HIDDEN}.", "n": 1}
    assert snapshot["history"] == [{"content": HIDDEN}]
    assert (snapshot["position"], snapshot["pending"]) == ([HIDDEN], [{"header": HIDDEN}])
    assert is_nowhere(TOKEN)


def test_a_redacting_agent_goes_on_with_the_history_that_it_knows(redacting: Agent, reviewer: Any) -> None:
    calls = as_agent(redacting)
    asked = with_snapshot(history=[{"content": TOKEN}])
    asked["run"] = {"external_id": "order-1", "title": "Refund"}
    first = calls.post("/suspensions", asked).json()
    approval = Approval.objects.get()
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)

    asked["snapshot"]["history"] += [{"content": f"again {TOKEN}"}]
    second = calls.post("/suspensions", asked, If_Match=str(first["run"]["checkpoint"]))

    assert second.status_code == 201, second.content
    assert saved(first["run"]["id"]).history == ({"content": HIDDEN}, {"content": f"again {HIDDEN}"})


def test_a_history_stored_before_a_rule_existed_is_no_obstacle(
    agent: Agent, reviewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = as_agent(agent)
    asked = with_snapshot(history=[{"content": TOKEN}])
    asked["run"] = {"external_id": "order-1", "title": "Refund"}
    with monkeypatch.context() as older:
        older.setattr("checkpoints.credentials.scanning.RULES", [r for r in rules.RULES if r.name != "github-token"])
        first = calls.post("/suspensions", asked).json()
    approval = Approval.objects.get()
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)

    asked["snapshot"]["history"] += [{"content": "fine"}]
    assert calls.post("/suspensions", asked, If_Match=str(first["run"]["checkpoint"])).status_code == 201


def test_another_history_is_still_refused(redacting: Agent, reviewer: Any) -> None:
    calls = as_agent(redacting)
    asked = with_snapshot(history=[{"content": TOKEN}])
    asked["run"] = {"external_id": "order-1", "title": "Refund"}
    first = calls.post("/suspensions", asked).json()
    approval = Approval.objects.get()
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)
    for history in ([], [{"content": "other"}], [{"content": HIDDEN + "."}]):
        asked["snapshot"]["history"] = history
        refused = calls.post("/suspensions", asked, If_Match=str(first["run"]["checkpoint"]))
        assert (refused.status_code, pointers(refused)) == (400, {"#/snapshot/history"})


def test_arguments_stay_exact_so_they_are_refused_from_every_agent(redacting: Agent) -> None:
    response = as_agent(redacting).post("/suspensions", suspension(args={"order": "A-7", "headers": [{"x": TOKEN}]}))

    assert response.status_code == 400
    assert pointers(response) == {"#/approvals/0/args/headers/0/x"}
    assert "github-token" in response.content.decode()
    assert TOKEN not in response.content.decode()
    assert not Run.objects.exists()


def named(**names: Any) -> dict[str, Any]:
    """A suspension that calls its run (`run_title`, `external_id`) and its approval so."""
    of_run = {"run_title": "title", "external_id": "external_id"}
    asked = suspension(**{name: text for name, text in names.items() if name not in of_run})
    asked["run"] |= {of_run[name]: text for name, text in names.items() if name in of_run}
    return asked


@pytest.mark.parametrize(
    ("names", "pointer"),
    [
        ({"run_title": f"Use {TOKEN}"}, "#/run/title"),
        ({"title": f"Use {TOKEN}"}, "#/approvals/0/title"),
        ({"description": f"It said:\n\n{TOKEN}"}, "#/approvals/0/description"),
        ({"external_id": TOKEN}, "#/run/external_id"),
        ({"key": TOKEN}, "#/approvals/0/key"),
        ({"tool": TOKEN}, "#/approvals/0/tool"),
        ({"args_schema": {"description": TOKEN}}, "#/approvals/0/args_schema/description"),
    ],
)
def test_what_something_is_called_is_refused_too(agent: Agent, names: dict[str, Any], pointer: str) -> None:
    response = as_agent(agent).post("/suspensions", named(**names))
    assert (response.status_code, pointers(response)) == (400, {pointer})
    assert "looks like a credential (github-token)" in response.json()["errors"][0]["detail"].lower()
    assert TOKEN not in response.content.decode()
    assert not Run.objects.exists()
    assert is_nowhere(TOKEN)


def test_a_hosted_runs_title_is_refused_too(agent: Agent) -> None:
    asked = {"workflow": "refund-agent", "input": {"order_id": "A-7", "amount": "1"}, "title": f"With {TOKEN}"}
    response = as_agent(agent).post("/runs", asked)
    assert (response.status_code, pointers(response)) == (400, {"#/title"})
    assert (response.json()["code"], response.json()["rule"]) == ("holds_credential", "github-token")
    assert TOKEN not in response.content.decode()
    assert is_nowhere(TOKEN)


def test_words_are_redacted_for_an_agent_that_is_set_up_so_and_names_are_not(redacting: Agent) -> None:
    calls = as_agent(redacting)
    short = SAMPLES["aws-access-key"]  # what stands for it is longer
    long = f"{'x' * (199 - len(short))} {short}"
    asked = named(run_title=f"Use {TOKEN}", title=long, description=f"Because of {TOKEN}.")
    assert calls.post("/suspensions", asked).status_code == 201
    approval = Approval.objects.get()
    assert approval.run.title == f"Use {HIDDEN}"
    assert approval.title == long.replace(short, "[redacted: aws-access-key]")[:200]
    assert approval.description == f"Because of {HIDDEN}."
    started = calls.post(
        "/runs", {"workflow": "refund-agent", "input": {"order_id": "A-7", "amount": "1"}, "title": TOKEN}
    )
    assert started.json()["title"] == HIDDEN
    unnamed = named(title=long)
    del unnamed["run"]["title"]
    named_after_it = calls.post("/suspensions", unnamed).json()["run"]["id"]
    assert Run.objects.get(pk=named_after_it).title == approval.title
    assert is_nowhere(TOKEN)
    assert is_nowhere(short)
    for names in ({"external_id": TOKEN}, {"key": TOKEN}, {"tool": TOKEN}):
        refused = calls.post("/suspensions", named(**names))
        assert (refused.status_code, TOKEN in refused.content.decode()) == (400, False)


def test_a_run_that_was_called_so_before_goes_on(agent: Agent, reviewer: Any) -> None:
    calls, asked = as_agent(agent), suspension()
    first = calls.post("/suspensions", asked).json()
    Run.objects.update(external_id=TOKEN, title=TOKEN)
    approval = Approval.objects.get()
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)
    asked["run"] = {"external_id": TOKEN}
    again = calls.post("/suspensions", asked, If_Match=str(first["run"]["checkpoint"]))
    assert again.status_code == 201, again.content


def test_an_edit_and_a_message_are_refused_too(agent: Agent, reviewer: Any) -> None:
    as_agent(agent).post("/suspensions", suspension())
    approval = Approval.objects.get()
    person = as_person(reviewer)
    said = {"review": approval.review}

    edited = person.post(f"/approvals/{approval.pk}/votes", {"type": "edit", "args": {"order": TOKEN}, **said})
    assert (edited.status_code, pointers(edited)) == (400, {"#/args/order"})
    answered = person.post(f"/approvals/{approval.pk}/votes", {"type": "respond", "message": f"use {TOKEN}", **said})
    assert (answered.status_code, pointers(answered)) == (400, {"#/message"})
    assert TOKEN not in (edited.content + answered.content).decode()


def test_a_decision_is_delivered_whatever_words_it_came_with(
    agent: Agent, reviewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_agent(agent).post("/suspensions", suspension())
    approval = Approval.objects.get()
    with monkeypatch.context() as older:
        older.setattr("approvals.services.voting.credentials_in", lambda message: [])
        vote(approval_id=approval.pk, voter=reviewer, verdict="respond", review=approval.review, message=f"use {TOKEN}")
    gate = Gate.objects.get()
    assert gate.answer is not None
    assert TOKEN.encode() not in bytes(gate.answer)


def test_what_an_agent_reports_is_kept_redacted(agent: Agent, reviewer: Any) -> None:
    calls = as_agent(agent)
    calls.post("/suspensions", suspension())
    approval = Approval.objects.get()
    vote(approval_id=approval.pk, voter=reviewer, verdict="approve", review=approval.review)
    calls.post(f"/approvals/{approval.pk}/consume", {})
    report = {"status": "succeeded", "result": {"sum": 1.50, "printed": TOKEN}}
    assert calls.post(f"/approvals/{approval.pk}/outcome", report).status_code == 200
    assert calls.post(f"/approvals/{approval.pk}/outcome", report).status_code == 200
    assert json.loads(Grant.objects.get().outcome) == {"result": {"sum": 1.50, "printed": HIDDEN}}

    ended = calls.post(f"/runs/{approval.run_id}/finish", {"error": f"no entry with {TOKEN}"})
    assert ended.json()["error"]["message"] == f"no entry with {HIDDEN}"
    assert is_nowhere(TOKEN)


def test_create_agent_says_what_is_to_be_done() -> None:
    out = StringIO()
    call_command("create_agent", "careful", "--json", stdout=out)
    call_command("create_agent", "chatty", "--on-credentials", "redact", "--json", stdout=out)
    assert dict(Agent.objects.values_list("name", "on_credentials")) == {"careful": "refuse", "chatty": "redact"}
    with pytest.raises(CommandError, match="on-credentials"):
        call_command("create_agent", "odd", "--on-credentials", "ignore")


def test_set_agent_changes_it_for_an_agent_that_is_there(agent: Agent) -> None:
    def said(wanted: str) -> str:
        out = StringIO()
        call_command("set_agent", agent.name, "--on-credentials", wanted, stdout=out)
        return out.getvalue()

    calls, asked = as_agent(agent), suspension()
    asked["snapshot"]["state"] = {"note": TOKEN}
    assert calls.post("/suspensions", asked).status_code == 400
    assert (
        said("redact")
        == f"{agent.name}: inputs, snapshots, titles and descriptions with a credential are now stored redacted.\n"
    )
    assert calls.post("/suspensions", asked).status_code == 201
    assert "were already stored redacted" in said("redact")
    event = AuditEvent.objects.get(type="agent.changed")  # the second time changed nothing
    assert (event.chain, event.actor) == (f"team:{agent.team_id}", "system")
    assert '"on_credentials":"redact","on_credentials_before":"refuse"' in AuditBody.objects.get(event=event).body
    assert "are now refused" in said("refuse")
    assert calls.post("/suspensions", asked).status_code == 400
    assert is_nowhere(TOKEN)
    with pytest.raises(CommandError, match="team 'Default' has no agent named 'nobody'"):
        call_command("set_agent", "nobody", "--on-credentials", "redact")


def test_a_credential_that_was_there_before_keeps_nobody_from_editing(agent: Agent, reviewer: Any) -> None:
    as_agent(agent).post("/suspensions", suspension(args={"order": "A-7", "key": "k"}))
    approval = Approval.objects.get()
    Approval.objects.filter(pk=approval.pk).update(args=canonical.dumps({"order": "A-7", "key": TOKEN}))
    path, said = f"/approvals/{approval.pk}/votes", {"type": "edit", "review": approval.review}
    person = as_person(reviewer)
    assert person.post(path, {**said, "args": {"order": TOKEN, "key": TOKEN}}).status_code == 400
    assert person.post(path, {**said, "args": {"order": "A-8", "key": TOKEN}}).status_code == 201
