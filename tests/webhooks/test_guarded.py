"""An agent's webhook on its page: an address is proposed, confirmed by another administrator, and then verified."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import close_old_connections, connection
from django.test import Client, override_settings

from approvals.models import AuditBody, RuleChange
from runs.models import Agent, DrawnWebhook, Webhook, WebhookPost
from runs.services.webhooks import set_webhook
from tests.support.pages import browser, text
from tests.support.waiting import until
from tests.webhooks.conftest import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unrung")]

OPEN_TRANSACTIONS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND xact_start IS NOT NULL
"""


@pytest.fixture
def amy(person: Callable[..., User]) -> Client:
    return browser(person("amy", "admin"))


@pytest.fixture
def ann(person: Callable[..., User]) -> Client:
    return browser(person("ann", "admin"))


def page(agent: Agent, deed: str = "") -> str:
    return f"/people/agents/{agent.pk}/webhook/{deed}"


def propose(by: Client, agent: Agent, url: str, **fields: str) -> tuple[str, str | None]:
    """The address of the proposal, and the secret if one was shown."""
    answer = by.post(page(agent, "propose/"), {"url": url, **fields})
    assert answer.status_code in (200, 302), answer.content
    shown = re.search(r"whsec_[\w+/=]+", answer.content.decode())
    return f"/rules/changes/{RuleChange.objects.latest('pk').pk}/", shown[0] if shown else None


def confirm(by: Client, change: str) -> int:
    return by.post(f"{change}confirm/").status_code


def told() -> list[str]:
    """What the audit trail says became of it, in order."""
    bodies = AuditBody.objects.filter(event__type="webhook.changed").order_by("event__id")
    texts = bodies.values_list("body", flat=True)
    return [found[1] for each in texts if (found := re.search(r'"(?:what|change)":"([^"]+)"', each))]


def test_an_address_is_proposed_confirmed_verified_and_removed(
    agent: Agent, amy: Client, ann: Client, receiver: Receiver
) -> None:
    assert "It has none" in text(amy, page(agent))
    change, secret = propose(amy, agent, receiver.url)
    assert secret
    assert not Webhook.objects.exists()
    assert f"Told at {receiver.url}" in text(ann, change)
    assert "a new secret, which amy has" in text(ann, change)
    assert "another administrator must confirm" in amy.post(f"{change}confirm/").content.decode()
    assert confirm(ann, change) == 302
    assert "Not verified" in text(ann, page(agent))
    refused = ann.post(page(agent, "verify/"))
    assert (refused.status_code, "answered 401" in refused.content.decode()) == (409, True)

    receiver.control(secret=secret)
    assert ann.post(page(agent, "verify/"))["Location"] == page(agent)

    assert "State Verified since" in text(amy, page(agent))
    assert f"{receiver.url} Verified" in text(amy, "/people/")
    assert amy.post(page(agent, "remove/")).status_code == 302
    assert "It has none" in text(amy, page(agent))
    for deed in ("remove/", "verify/"):
        assert "has no webhook" in amy.post(page(agent, deed)).content.decode()
    assert told() == ["proposed", "confirmed", "registered", "not verified", "verified", "removed"]


def test_how_it_does_stands_there(
    hooked: Agent, amy: Client, park: Callable[..., Any], decide: Callable[..., None]
) -> None:
    decide(park())
    Webhook.objects.update(failing_since="2026-11-01T00:00Z", failures=3, last_error="it answered 500")
    shown = text(amy, page(hooked))
    for said in ("Failing since", "Verified", "Last failure it answered 500", "Posts that wait 1"):
        assert said in shown
    Webhook.objects.update(gone_at="2026-11-02T00:00Z")
    WebhookPost.objects.update(state="given_up", settled_at="2026-11-02T00:00Z")
    shown = text(amy, page(hooked))
    for said in ("Gone since", "Posts that wait 0", "Given up 1"):
        assert said in shown


def test_another_address_keeps_the_secret_unless_a_new_one_is_wanted(
    hooked: Agent, amy: Client, ann: Client, receiver: Receiver
) -> None:
    change, secret = propose(amy, hooked, receiver.url + "/2")
    assert secret is None
    assert Webhook.objects.get().url == receiver.url
    assert f"Told at {receiver.url}/2" in text(ann, change)
    confirm(ann, change)
    assert Webhook.objects.get().verified_at is None
    assert ann.post(page(hooked, "verify/")).status_code == 302
    same = amy.post(page(hooked, "propose/"), {"url": receiver.url + "/2"})
    assert (same.status_code, "is what it is already" in same.content.decode()) == (400, True)
    change, secret = propose(amy, hooked, receiver.url + "/2", new_secret="on")
    assert secret
    assert Webhook.objects.get().verified_at
    confirm(ann, change)
    assert ann.post(page(hooked, "verify/")).status_code == 409
    receiver.control(secret=secret)
    assert ann.post(page(hooked, "verify/")).status_code == 302


@pytest.mark.parametrize("meanwhile", ["set again", "removed"])
def test_a_proposal_about_a_webhook_that_has_changed_is_stale(
    hooked: Agent, amy: Client, ann: Client, receiver: Receiver, meanwhile: str
) -> None:
    change, _ = propose(amy, hooked, receiver.url + "/2")
    if meanwhile == "removed":
        Webhook.objects.all().delete()
    else:
        set_webhook(agent=hooked, url=receiver.url, new_secret_wanted=True)
    assert confirm(ann, change) == 409
    assert not Webhook.objects.filter(url=receiver.url + "/2").exists()
    ann.post(f"{change}withdraw/")
    assert not DrawnWebhook.objects.exists()


@override_settings(FERMATA_WEBHOOK_NETWORKS=())
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://127.0.0.1/", "internal address"),
        ("http://192.0.2.7/", "internal address"),
        ("https://user:word@example.com/", "no user name"),
        ("example.com", "must begin with https://"),
        ("https://no-such-host.invalid/", "cannot be resolved"),
        ("", "This field is required"),
    ],
)
def test_an_address_that_is_refused_is_said_at_its_field(agent: Agent, amy: Client, url: str, said: str) -> None:
    answer = amy.post(page(agent, "propose/"), {"url": url})
    error = re.search(r'name="url"[^>]*>\s*<p class="field-error"[^>]*>([^<]+)', answer.content.decode())
    assert answer.status_code == 400
    assert error
    assert said in error[1]
    assert not RuleChange.objects.exists()
    assert not DrawnWebhook.objects.exists()


def test_neither_secret_nor_query_stands_where_everybody_reads(
    agent: Agent, amy: Client, ann: Client, person: Callable[..., User], receiver: Receiver
) -> None:
    auditor = browser(person("olga", "auditor"))
    with override_settings(FERMATA_SNAPSHOT_KEYS={"one": bytes(32)}, FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED=True):
        change, secret = propose(amy, agent, receiver.url + "?code=hidden")
        assert secret
        raw = b64decode(secret.removeprefix("whsec_"))
        assert raw not in bytes(DrawnWebhook.objects.get().secret)
        assert "With the query code=hidden" in text(ann, change)
        assert receiver.url in text(auditor, change)
        assert "hidden" not in text(auditor, change)
        confirm(ann, change)
        assert raw not in bytes(Webhook.objects.get().secret)
    assert Webhook.objects.get().url == receiver.url + "?code=hidden"
    kept = "".join([*AuditBody.objects.values_list("body", flat=True), RuleChange.objects.get().body])
    for hidden in ("hidden", secret, b64encode(raw).decode(), raw.hex()):
        assert hidden not in kept
    for path in (change, page(agent), "/people/"):
        assert "hidden" not in text(auditor, path)
        assert secret not in text(amy, path)


def test_no_transaction_is_open_while_the_receiver_is_asked(hooked: Agent, amy: Client, receiver: Receiver) -> None:
    receiver.control(answers=[{"status": 200, "hold": True}])

    def verify() -> int:
        try:
            return amy.post(page(hooked, "verify/")).status_code
        finally:
            close_old_connections()
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(verify)
        until(receiver.received, what="the receiver is asked")
        with connection.cursor() as cursor:
            cursor.execute(OPEN_TRANSACTIONS)
            assert cursor.fetchone() == (0,)
        receiver.release()
        assert answer.result(10) == 409
