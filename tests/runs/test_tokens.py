"""Personal tokens: made with the password, shown once, and how they end."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from approvals.models import AuditBody, AuditEvent
from runs.models import PersonalToken
from runs.services.passwords import change_password, draw_link, open_link, use_link
from runs.services.people import set_active
from runs.services.tokens import MOST_TOKENS, TokenRefused, make_token, revoke_token
from tests.support.api import PASSWORD, Caller, in_browser, with_token

pytestmark = pytest.mark.django_db

NEW = "a stapler under the willow"
ASKED = {"name": "nightly report", "days": 7, "may_vote": "on", "password": PASSWORD}


def status(token: str) -> int:
    return Caller(f"Bearer {token}").get("/approvals").status_code


def page(user: User, path: str = "/tokens/", body: dict[str, Any] | None = None) -> Any:
    client = in_browser(user).client
    client.handler.enforce_csrf_checks = False
    return client.get(path) if body is None else client.post(path, body)


def made(person: User, **changes: Any) -> str:
    return make_token(**{"person": person, "name": "x", "lasts": timedelta(days=7), "may_vote": True, **changes}).text


def told() -> list[str]:
    return list(AuditEvent.objects.filter(type__startswith="token.").order_by("pk").values_list("type", flat=True))


def test_a_token_is_made_with_the_password_and_shown_once(reviewer: User) -> None:
    shown = page(reviewer, body=ASKED).content.decode()
    (text,) = re.findall(r"fmp_[a-z0-9]{12}_[\w-]{43}", shown)
    assert status(text) == 200
    later = page(reviewer).content.decode()
    assert text not in later
    assert "nightly report" in later
    assert "Reads and votes" in later
    row = PersonalToken.objects.values().get()
    secret = text.split("_", 2)[2]
    assert secret not in str(row)
    assert not AuditBody.objects.filter(body__contains=secret).exists()
    assert told() == ["token.created"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"password": "wrong"}, "That is not your password."),
        ({"password": ""}, "This field is required."),
        ({"name": " "}, "This field is required."),
        ({"days": 31}, "less than or equal to 30"),
        ({"days": 0}, "greater than or equal to 1"),
        ({"days": "x"}, "whole number"),
    ],
)
def test_anything_less_makes_none(reviewer: User, changes: dict[str, Any], said: str) -> None:
    answer = page(reviewer, body={**ASKED, **changes})
    assert (answer.status_code, said in answer.content.decode()) == (400, True)
    assert not PersonalToken.objects.exists()


def test_thirty_days_is_the_longest(reviewer: User, move_clock: Callable[[timedelta], None]) -> None:
    with pytest.raises(TokenRefused):
        made(reviewer, lasts=timedelta(days=30, seconds=1))
    text = made(reviewer, lasts=timedelta(days=30))
    with pytest.raises(IntegrityError), transaction.atomic():
        PersonalToken.objects.update(expires_at=PersonalToken.objects.get().expires_at + timedelta(seconds=1))
    assert status(text) == 200
    move_clock(timedelta(days=30, seconds=1))
    assert status(text) == 401


def test_there_are_not_too_many(reviewer: User) -> None:
    for _ in range(MOST_TOKENS):
        made(reviewer)
    answer = page(reviewer, body=ASKED)
    assert (answer.status_code, "revoke one first" in answer.content.decode()) == (400, True)
    revoke_token(token=PersonalToken.objects.first())
    assert page(reviewer, body=ASKED).status_code == 200


def test_a_revoked_token_stops_at_once(reviewer: User) -> None:
    text = made(reviewer)
    for _ in range(2):
        assert page(reviewer, f"/tokens/{PersonalToken.objects.get().pk}/revoke/", {}).status_code == 302
    assert status(text) == 401
    assert told() == ["token.created", "token.revoked"]
    assert "no token that works" in page(reviewer).content.decode()


def test_nobody_revokes_anothers(reviewer: User, person: Callable[..., User]) -> None:
    text = made(reviewer)
    other = person("other", "admin", "operator")
    assert page(other, f"/tokens/{PersonalToken.objects.get().pk}/revoke/", {}).status_code == 404
    assert status(text) == 200


def by_link(person: User) -> None:
    link = draw_link()
    open_link(person=person, digest=link.digest, actor="system")
    use_link(digest=link.digest, password=NEW)


@pytest.mark.parametrize(
    "end",
    [lambda person: change_password(person=person, password=NEW), by_link],
    ids=["changed", "reset by a link"],
)
def test_a_new_password_ends_all_tokens(reviewer: User, end: Callable[[User], None]) -> None:
    texts = [made(reviewer) for _ in range(2)]
    end(reviewer)
    assert [status(text) for text in texts] == [401, 401]
    assert told().count("token.revoked") == 2


def test_a_closed_account_has_no_tokens_even_when_it_opens_again(reviewer: User) -> None:
    text = made(reviewer)
    set_active(person=reviewer, active=False)
    assert status(text) == 401
    set_active(person=reviewer, active=True)
    assert status(text) == 401


def test_an_inactive_person_is_refused_however_that_came_to_be(reviewer: User) -> None:
    text = made(reviewer)
    User.objects.filter(pk=reviewer.pk).update(is_active=False)
    assert status(text) == 401


@pytest.mark.parametrize("wrong", ["fmp_", "fmp_aaaaaaaaaaaa_" + "a" * 43, "fmp_é"])
def test_what_is_no_token_is_401(db: None, wrong: str) -> None:
    answer = Caller(f"Bearer {wrong}").get("/runs")
    assert (answer.status_code, answer.json()["code"]) == (401, "token_refused")
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_another_secret_with_the_right_prefix_is_401(reviewer: User) -> None:
    assert status(made(reviewer)[:-4] + "aaaa") == 401


def test_its_use_is_noted_and_shown(reviewer: User) -> None:
    text = made(reviewer)
    assert "never used" in page(reviewer).content.decode()
    assert status(text) == 200
    assert "last used" in page(reviewer).content.decode()


def test_a_token_is_no_way_into_the_pages(reviewer: User) -> None:
    assert with_token(reviewer).client.get("/").status_code == 302
    assert with_token(reviewer).client.get("/tokens/").status_code == 302
