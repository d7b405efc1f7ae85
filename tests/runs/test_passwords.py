"""Who sets a password: its owner, or whoever holds a link that works once. Either ends the owner's other sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client

from approvals.models import AuditEvent
from runs.clock import database_now
from runs.models import Credential, ResetLink
from runs.services.passwords import LINK_LIFE, LinkRefused, PasswordRefused, digest_of, draw_link, open_link, use_link
from tests.support.api import PASSWORD
from tests.support.pages import browser

pytestmark = pytest.mark.django_db

NEW = "a stapler under the willow"
FORM = "/password/new/"


def link_for(person: User) -> str:
    link = draw_link()
    open_link(person=person, digest=link.digest, actor="system")
    return link.text


def came_by(text: str) -> Client:
    """The browser of somebody who has just followed the link."""
    visitor = Client()
    assert visitor.get(f"/password/{text}/")["Location"] == FORM
    return visitor


def told() -> list[str]:
    events = AuditEvent.objects.filter(type="person.changed").select_related("content").order_by("pk")
    return [event.content.body for event in events]


def test_ones_own_takes_the_old_one_and_ends_the_other_sessions(reviewer: User) -> None:
    here, elsewhere = browser(reviewer), browser(reviewer)
    wrong = here.post("/password/", {"current": "not it", "password": NEW, "again": NEW})
    assert (wrong.status_code, "That is not your password." in wrong.content.decode()) == (400, True)

    assert here.post("/password/", {"current": PASSWORD, "password": NEW, "again": NEW}).status_code == 302

    reviewer.refresh_from_db()
    assert reviewer.check_password(NEW)
    assert here.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302
    assert Credential.objects.get(person=reviewer).set_at <= database_now()
    assert "password changed" in told()[-1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"password": "short", "again": "short"}, "too short"),
        ({"password": "password1234", "again": "password1234"}, "too common"),
        ({"password": NEW, "again": NEW + "x"}, "The two are not the same."),
        ({"password": NEW}, "This field is required."),
    ],
)
def test_what_django_does_not_let_through_is_said_and_the_link_lives(
    reviewer: User, fields: dict[str, str], said: str
) -> None:
    text = link_for(reviewer)

    page = came_by(text).post(FORM, fields)

    assert page.status_code == 400
    assert said in page.content.decode()
    use_link(digest=digest_of(text), password=NEW)


def test_a_link_works_once_without_a_sign_in_and_ends_every_session(reviewer: User) -> None:
    elsewhere, text, other = browser(reviewer), link_for(reviewer), link_for(reviewer)
    first, second = came_by(text), came_by(text)
    for visitor in (first, second, first):  # reading it does not use it up
        assert "reviewer" in visitor.get(FORM).content.decode()

    assert first.post(FORM, {"password": NEW, "again": NEW}).status_code == 200

    reviewer.refresh_from_db()
    assert reviewer.check_password(NEW)
    assert elsewhere.get("/").status_code == 302
    for used in (text, other):
        assert Client().get(f"/password/{used}/").status_code == 404
    for visitor in (first, second):
        assert visitor.get(FORM).status_code == 404
        assert visitor.post(FORM, {"password": NEW, "again": NEW}).status_code == 404
    assert "password set by a reset link" in told()[-1]
    assert not any(text in body for body in told())


def test_the_link_leaves_the_address_at_once_and_changes_only_the_visitors_session(reviewer: User) -> None:
    text, before = link_for(reviewer), (*told(), *ResetLink.objects.values())
    visitor = Client(enforce_csrf_checks=True)

    response = visitor.get(f"/password/{text}/")

    assert (response.status_code, response["Location"], response["Referrer-Policy"]) == (302, FORM, "no-referrer")
    assert response.content == b""
    page = visitor.get(FORM)
    assert (page.status_code, page["Referrer-Policy"]) == (200, "same-origin")
    assert "no-store" in response["Cache-Control"]
    assert text not in page.content.decode()
    assert (*told(), *ResetLink.objects.values()) == before
    assert text not in str([session.get_decoded() for session in Session.objects.all()])
    assert visitor.post(f"/password/{text}/", {"password": NEW, "again": NEW}).status_code in (403, 405)
    assert Client().post(f"/password/{text}/", {"password": NEW, "again": NEW}).status_code == 405
    assert Client().get(FORM).status_code == 404  # whoever did not come by it
    unknown = Client()
    assert unknown.get(f"/password/{'x' * 43}/").status_code == 404
    assert unknown.get(FORM).status_code == 404
    reviewer.refresh_from_db()
    assert reviewer.check_password(PASSWORD)


@pytest.mark.django_db(transaction=True)
def test_a_link_runs_out_and_does_not_open_a_closed_account(
    person: Callable[..., User], move_clock: Callable[[timedelta], None]
) -> None:
    ada, bob = person("ada"), person("bob")
    late, closed = link_for(ada), link_for(bob)
    User.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(LinkRefused):
        use_link(digest=digest_of(closed), password=NEW)
    move_clock(LINK_LIFE + timedelta(seconds=1))
    with pytest.raises(LinkRefused):
        use_link(digest=digest_of(late), password=NEW)
    with pytest.raises(LinkRefused):
        use_link(digest=digest_of("x" * 43), password=NEW)
    assert not Credential.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_two_who_use_a_link_at_once(reviewer: User) -> None:
    for _ in range(5):
        text, barrier = link_for(reviewer), threading.Barrier(2)

        def use(password: str, text: str = text, barrier: threading.Barrier = barrier) -> Any:
            try:
                barrier.wait(30)
                return use_link(digest=digest_of(text), password=password)
            except LinkRefused as refusal:
                return refusal
            finally:
                connections.close_all()

        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(use, (NEW, NEW + "!")))
        assert sum(isinstance(result, LinkRefused) for result in results) == 1


def test_on_the_command_line(reviewer: User, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    call_command("reset_link", "reviewer")
    address = capsys.readouterr().out.strip()
    assert Client().get(address, follow=True).status_code == 200
    with pytest.raises(CommandError, match="no active person named 'nobody'"):
        call_command("reset_link", "nobody")

    monkeypatch.setattr("runs.management.commands.changepassword.getpass", lambda prompt: "short")
    with pytest.raises(CommandError, match="too short"):
        call_command("changepassword", "reviewer")
    monkeypatch.setattr("runs.management.commands.changepassword.getpass", lambda prompt: NEW)
    call_command("changepassword", "reviewer")

    reviewer.refresh_from_db()
    assert reviewer.check_password(NEW)
    assert not ResetLink.objects.filter(ended_at__isnull=True).exists()
    assert Credential.objects.get(person=reviewer).vouched_at is None


def test_a_service_says_what_is_wrong_with_a_password(reviewer: User) -> None:
    with pytest.raises(PasswordRefused, match="too similar"):
        use_link(digest=digest_of(link_for(reviewer)), password="reviewer")


def test_the_admin_sends_one_to_ones_own_page(admin_user: User) -> None:
    response = browser(admin_user).get("/admin/password_change/")
    assert (response.status_code, response["Location"]) == (302, "/password/")
