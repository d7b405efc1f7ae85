"""Secrets are had anew at each resume, and are in nothing that is saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from runs.authoring import RunContext, SecretRef, StepFailed, secret, tool, workflow
from runs.models import Run, Step
from runs.services.answering import record_event
from runs.services.controlling import retry_run
from tests.engine.conftest import Driver
from tests.engine.flows import CALLS, SWITCH, look, mail
from tests.support.cleaning import LEFT_ALONE, TABLES

VALUE = "correct horse battery staple"

pytestmark = pytest.mark.usefixtures("deployment")  # what a test registers is gone after it


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERMATA_SECRET_DB_PASSWORD", VALUE)


def provider(name: str) -> str | None:
    """What a deployment may name in FERMATA_SECRETS."""
    if SWITCH.get("vault") == "down":
        raise ConnectionError(f"no answer, {VALUE}")
    return {"DB_PASSWORD": "from the vault"}.get(name)


def start(driver: Driver, phase: Callable[[Any, RunContext], object]) -> Run:
    name = f"test/author-{uuid4().hex[:8]}"
    workflow(name)(type("Author", (), {"start": phase, "__qualname__": name}))
    return driver.start(name)


def everything_saved() -> bytes:
    """Every row of every table, as bytes."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        for (table,) in cursor.fetchall():
            if table not in LEFT_ALONE and not table.startswith("seed_"):
                cursor.execute(f'SELECT record_send(t) FROM "{table}" t')
                found += [bytes(row) for (row,) in cursor.fetchall()]
    return b"".join(found)


def test_a_phase_has_it_anew_at_each_try(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def phase(self: Any, run: RunContext) -> object:
        seen.append(run.secret(SecretRef("DB_PASSWORD")))
        return run.complete(run.wait_for_event("go"))

    run = start(driver, phase)
    driver.go_on(run)
    monkeypatch.setenv("FERMATA_SECRET_DB_PASSWORD", "rotated meanwhile")
    record_event(run_id=run.id, name="go", payload=None)
    assert driver.go_on(run).status == "completed"
    assert seen == [VALUE, "rotated meanwhile"]
    assert VALUE.encode() not in everything_saved()


def test_a_tool_has_it_from_the_reference_among_its_arguments(driver: Driver) -> None:
    seen = []

    @tool(effect="read", name="test/connect")
    def connect(password: SecretRef) -> str:
        seen.append(secret(password))
        return "connected"

    def phase(self: Any, run: RunContext) -> object:
        run.state["database"] = {"user": "app", "password": SecretRef("DB_PASSWORD")}
        return run.complete(run.step("connect", connect, run.state["database"]["password"]))

    run = start(driver, phase)
    assert driver.go_on(run).status == "completed"
    assert seen == [VALUE]
    assert VALUE.encode() not in everything_saved()


def put_into_state(run: RunContext, value: str) -> object:
    run.state["order"] = {"notes": ["", value]}
    return run.complete()


def append_to_history(run: RunContext, value: str) -> object:
    run.history.append({"content": value})
    return run.complete()


def pass_as_argument(run: RunContext, value: str) -> object:
    return run.complete(run.step("look", look, value))


def set_position(run: RunContext, value: str) -> object:
    run.position = {"at": value}
    return run.complete()


def return_it(run: RunContext, value: str) -> object:
    return run.complete({"value": value})


def wait_with_it(run: RunContext, value: str) -> object:
    run.pending = [value]
    return run.complete(run.wait_for_event("go"))


@pytest.mark.parametrize(
    ("save", "path"),
    [
        (put_into_state, "state.order.notes[1]"),
        (append_to_history, "history[0].content"),
        (pass_as_argument, "arguments of look.what"),
        (set_position, "position.at"),
        (return_it, "result.value"),
        (wait_with_it, "pending[0]"),
    ],
)
def test_its_value_is_refused_wherever_it_would_be_saved(driver: Driver, save: Any, path: str) -> None:
    run = start(driver, lambda self, run: save(run, f"psql://{run.secret('DB_PASSWORD')}@db"))
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert run.error == (
        f"{path}: looks like a credential (the secret DB_PASSWORD): keep a SecretRef, or the text as "
        "checkpoints.codec.redact gives it"
    )
    assert VALUE.encode() not in everything_saved()


def test_an_effect_that_returns_it_is_not_repeated(driver: Driver) -> None:
    @tool(effect="once", name="test/leak")
    def leak() -> str:
        CALLS["leaked"] += 1
        return f"signed in with {secret('DB_PASSWORD')}"

    def phase(self: Any, run: RunContext) -> object:
        try:
            return run.complete(run.step("leak", leak))
        except StepFailed as failure:
            return run.complete(failure.kind)

    run = start(driver, phase)
    driver.go_on(run)
    assert driver.result(run) == "unsaveable"
    assert CALLS["leaked"] == 1
    assert VALUE.encode() not in everything_saved()


def test_an_error_that_says_it_is_kept_without_it(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    def phase(self: Any, run: RunContext) -> object:
        raise RuntimeError(f"refused: {run.secret('DB_PASSWORD')}")

    run = start(driver, phase)
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert run.error == "refused: [redacted: the secret DB_PASSWORD]"
    assert VALUE.encode() not in everything_saved()
    assert VALUE not in caplog.text


def test_what_one_run_had_is_nothing_to_another(driver: Driver) -> None:
    first = start(driver, lambda self, run: run.complete(len(run.secret("DB_PASSWORD"))))
    assert driver.go_on(first).status == "completed"
    second = start(driver, lambda self, run: run.complete(VALUE))
    assert driver.go_on(second).status == "completed"


def test_a_run_is_blocked_until_the_secret_is_there(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def phase(self: Any, run: RunContext) -> object:
        run.step("mail", mail, "hello")
        return run.complete(run.secret("API_KEY") == VALUE)

    run = start(driver, phase)
    head = driver.go_on(run)
    assert head.status == "blocked"
    assert head.detail == "cannot rehydrate: there is no secret 'API_KEY': set FERMATA_SECRET_API_KEY"
    monkeypatch.setenv("FERMATA_SECRET_API_KEY", VALUE)
    retry_run(run_id=run.id, actor="person:1")
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) is True
    assert CALLS["mail hello"] == 1


def test_a_tool_that_lacks_one_has_done_nothing(driver: Driver) -> None:
    @tool(effect="once", name="test/signed")
    def signed() -> str:
        return secret("API_KEY")

    run = start(driver, lambda self, run: run.complete(run.step("call", signed)))
    head = driver.go_on(run)
    assert head.status == "queued"
    assert head.detail == "trying call again: there is no secret 'API_KEY': set FERMATA_SECRET_API_KEY"
    assert Step.objects.get(run=run).state == "not_performed"


def test_a_deployment_names_its_own_provider(driver: Driver, settings: Any) -> None:
    settings.FERMATA_SECRETS = "tests.engine.test_secrets.provider"
    run = start(driver, lambda self, run: run.complete(len(run.secret("DB_PASSWORD"))))
    SWITCH["vault"] = "down"
    head = driver.go_on(run)
    assert (head.status, head.failures) == ("queued", 1)
    assert head.detail == (
        "trying a secret again: secret 'DB_PASSWORD': tests.engine.test_secrets.provider raised ConnectionError"
    )
    SWITCH.clear()
    type(head).objects.filter(pk=head.pk).update(wake_at=None)
    assert driver.go_on(run).status == "completed"
    assert driver.result(run) == len("from the vault")

    other = start(driver, lambda self, run: run.complete(run.secret("OTHER")))
    assert "there is no secret 'OTHER' at tests.engine.test_secrets.provider" in driver.go_on(other).detail


def test_a_name_is_a_name(driver: Driver) -> None:
    run = start(driver, lambda self, run: run.complete(run.secret("two words")))
    assert driver.go_on(run).status == "failed"
    run.refresh_from_db()
    assert "a secret's name has letters, digits and ._-" in run.error
