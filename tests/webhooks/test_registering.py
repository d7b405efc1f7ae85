"""A webhook is registered, verified before it is used, changed, and removed: each on record, and the secret nowhere."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from approvals.models import AuditBody, AuditEvent
from checkpoints.errors import NotEncrypted
from checkpoints.services import rotate_keys
from runs.models import Agent, Team, Webhook, WebhookPost
from runs.services.posting import post_next
from runs.services.webhooks import WebhookRefused, remove_webhook, set_webhook, verify_webhook
from tests.webhooks.conftest import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unrung")]


def changes() -> list[str]:
    """What the audit trail says became of webhooks, in order."""
    bodies = AuditBody.objects.filter(event__type="webhook.changed").order_by("event__id")
    return [body.partition('"change":"')[2].partition('"')[0] for body in bodies.values_list("body", flat=True)]


def test_a_webhook_is_used_only_once_its_receiver_answered(agent: Agent, receiver: Receiver) -> None:
    registered = set_webhook(agent=agent, url=receiver.url)
    with pytest.raises(WebhookRefused, match="answered 401"):
        verify_webhook(agent=agent)
    assert Webhook.objects.get().verified_at is None
    receiver.control(secret=registered.secret)
    assert verify_webhook(agent=agent).verified_at is not None
    assert changes() == ["registered", "not verified", "verified"]


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 204},
        {"status": 200, "body": {"challenge": "another"}},
        {"status": 200, "body": {"challenge": None}},
        {"status": 200, "body": ["challenge"]},
        {"status": 200, "body": "challenge"},
        {"status": 302, "headers": {"Location": "/hook"}},
        {"status": 500},
    ],
)
def test_no_other_answer_verifies(agent: Agent, receiver: Receiver, answer: dict[str, Any]) -> None:
    registered = set_webhook(agent=agent, url=receiver.url)
    receiver.control(secret=registered.secret, answers=[answer])
    with pytest.raises(WebhookRefused, match="not verified"):
        verify_webhook(agent=agent)
    assert Webhook.objects.get().verified_at is None


def test_a_changed_address_is_verified_anew_and_keeps_its_secret(
    hooked: Agent, receiver: Receiver, park: Callable[..., Any], decide: Callable[..., None]
) -> None:
    decide(park())
    assert set_webhook(agent=hooked, url=receiver.url + "/2").secret is None
    assert not post_next(agent_id=hooked.pk)  # it waits meanwhile
    verify_webhook(agent=hooked)
    assert post_next(agent_id=hooked.pk)
    assert [told["path"] for told in receiver.received()] == ["/hook/2"]


def test_a_new_secret_signs_from_then_on(hooked: Agent, receiver: Receiver) -> None:
    registered = set_webhook(agent=hooked, url=receiver.url, new_secret_wanted=True)
    assert registered.secret is not None
    with pytest.raises(WebhookRefused, match="answered 401"):
        verify_webhook(agent=hooked)
    receiver.control(secret=registered.secret)
    verify_webhook(agent=hooked)


def test_what_waits_when_a_webhook_is_removed_goes_to_the_next_one(
    hooked: Agent, receiver: Receiver, park: Callable[..., Any], decide: Callable[..., None]
) -> None:
    decide(park())
    remove_webhook(agent=hooked)
    assert not post_next(agent_id=hooked.pk)
    with pytest.raises(WebhookRefused, match="has no webhook"):
        remove_webhook(agent=hooked)
    receiver.control(secret=set_webhook(agent=hooked, url=receiver.url).secret)
    verify_webhook(agent=hooked)
    assert post_next(agent_id=hooked.pk)
    assert WebhookPost.objects.get().state == "delivered"
    assert changes() == ["registered", "verified", "removed", "registered", "verified"]


@override_settings(FERMATA_WEBHOOK_NETWORKS=())
def test_an_internal_address_cannot_be_registered(agent: Agent) -> None:
    with pytest.raises(WebhookRefused, match="internal address"):
        set_webhook(agent=agent, url="https://127.0.0.1/")
    assert not Webhook.objects.exists()


def test_the_secret_is_kept_sealed_and_resealed_when_keys_change(
    transactional_db: None, agent: Agent, receiver: Receiver
) -> None:
    one, two = {"one": bytes(32)}, {"two": b"2" * 32}
    with override_settings(FERMATA_SNAPSHOT_KEYS=one, FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED=True):
        registered = set_webhook(agent=agent, url=receiver.url)
        assert registered.secret is not None
        secret = b64decode(registered.secret.removeprefix("whsec_"))
        assert secret not in bytes(Webhook.objects.get().secret)
        receiver.control(secret=registered.secret)
    with override_settings(FERMATA_SNAPSHOT_KEYS={**two, **one}):
        assert rotate_keys().unreadable == ()
    with override_settings(FERMATA_SNAPSHOT_KEYS=two, FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED=True):
        assert verify_webhook(agent=agent).verified_at
    said = str(list(AuditEvent.objects.values())) + str(list(AuditBody.objects.values_list("body", flat=True)))
    assert registered.secret not in said
    assert b64encode(secret).decode() not in said


def test_a_secret_in_the_clear_is_not_used_where_that_is_forbidden(hooked: Agent) -> None:
    with (
        override_settings(FERMATA_SNAPSHOT_KEYS={"one": bytes(32)}, FERMATA_SNAPSHOT_ENCRYPTION_REQUIRED=True),
        pytest.raises(NotEncrypted),
    ):
        verify_webhook(agent=hooked)


# --- the command ---------------------------------------------------------------------------------------------------


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("webhook", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_registers_verifies_shows_and_removes(
    transactional_db: None, agent: Agent, receiver: Receiver
) -> None:
    secret = said("set", "agent", receiver.url + "?token=hidden").splitlines()[0]
    assert secret.startswith("whsec_")
    assert "not verified" in said("show", "agent")
    receiver.control(secret=secret)
    assert "answered the challenge" in said("verify", str(agent.pk))
    shown = said("show", "agent")
    assert "state    verified" in shown
    assert "hidden" not in shown + "".join(AuditBody.objects.values_list("body", flat=True))
    assert said("remove", "agent") == "removed\n"
    assert "no webhook" in said("show", "agent")


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (("set", "nobody", "https://example.com/"), "there is no agent 'nobody'"),
        (("set", "agent", "example.com"), "must begin with https://"),
        (("verify", "agent"), "has no webhook"),
        (("remove", "agent"), "has no webhook"),
    ],
)
def test_the_command_says_what_is_wrong(team: Team, agent: Agent, arguments: tuple[str, ...], wrong: str) -> None:
    with pytest.raises(CommandError, match=wrong):
        said(*arguments)
