"""Passwords: who sets them, since when they hold, and the link by which somebody who lost theirs sets a new one.

A session is bound to the password that it began under: setting one ends all of a person's sessions, and their tokens.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from runs.clock import DatabaseNow, database_now
from runs.errors import RunError
from runs.models import Credential, ResetLink
from runs.services.recording import actor_of, record_person
from runs.services.tokens import end_tokens

LINK_LIFE = timedelta(hours=24)


@dataclass
class PasswordRefused(RunError):
    """This password cannot be set: `reasons` are sentences."""

    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.reasons)


class LinkRefused(RunError):
    """There is no such link, or it was used, ran out, or belongs to an account that is not active."""

    def __str__(self) -> str:
        return "This link does not work, or no longer. Ask an administrator for another one."


@dataclass(frozen=True)
class LinkText:
    """A link just drawn. `text` is shown once and kept nowhere; `digest` is what a `ResetLink` holds."""

    text: str
    digest: bytes


@transaction.atomic
def change_password(*, person: User, password: str) -> None:
    """Set one's own; the caller has checked the old one. Raises `PasswordRefused`."""
    _set(person, password, actor=actor_of(person), how="changed")


@transaction.atomic
def use_link(*, digest: bytes, password: str) -> User:
    """Set the password of the person whom the link is for; it works once. Raises `LinkRefused`, `PasswordRefused`."""
    link = _living(digest, locked=True)
    _set(link.person, password, actor=actor_of(link.person), how="set by a reset link")
    return link.person


def holder_of(digest: bytes) -> User:
    """Whom a link is for. Raises `LinkRefused`."""
    return _living(digest, locked=False).person


def digest_of(text: str) -> bytes:
    """By what a link is known here, and nobody can use it who was not given its text."""
    return hashlib.sha256(text.encode()).digest()


def draw_link() -> LinkText:
    """A text that nobody can guess. It works once `open_link` has stored its digest."""
    text = secrets.token_urlsafe(32)
    return LinkText(text=text, digest=digest_of(text))


@transaction.atomic
def open_link(*, person: User, digest: bytes, actor: str) -> ResetLink:
    """Let a drawn link work, for `LINK_LIFE`."""
    now = database_now()
    link = ResetLink.objects.create(person=person, digest=digest, made_at=now, expires_at=now + LINK_LIFE)
    facts = {"what": "reset link made", "expires_at": link.expires_at.isoformat()}
    record_person(person=person.pk, type="person.changed", actor=actor, facts=facts)
    return link


@transaction.atomic
def note_password(*, person: User, vouched: bool = False) -> datetime:
    """Note that the person's password is a new one from now on. `vouched`: by the operator, on the command line."""
    now = database_now()
    Credential.objects.update_or_create(
        person=person, defaults={"set_at": now, "vouched_at": now} if vouched else {"set_at": now}
    )
    return now


@transaction.atomic
def set_by_operator(*, person: User, password: str) -> None:
    """On the server's command line. Raises `PasswordRefused`."""
    _set(person, password, actor=actor_of(None), how="set on the command line")


def check_password_rules(password: str, person: User) -> None:
    """Raises `PasswordRefused` for one that Django's validators do not let through."""
    try:
        validate_password(password, person)
    except ValidationError as error:
        raise PasswordRefused(tuple(error.messages)) from error


def _set(person: User, password: str, *, actor: str, how: str) -> None:
    check_password_rules(password, person)
    person.set_password(password)
    person.save(update_fields=["password"])
    now = note_password(person=person)
    ResetLink.objects.filter(person=person, ended_at__isnull=True).update(ended_at=now)
    end_tokens(person=person, actor=actor, why=f"password {how}")
    record_person(person=person.pk, type="person.changed", actor=actor, facts={"what": f"password {how}"})


def _living(digest: bytes, *, locked: bool) -> ResetLink:
    links = ResetLink.objects.select_related("person").filter(
        digest=digest, ended_at__isnull=True, expires_at__gt=DatabaseNow(), person__is_active=True
    )
    # Whoever comes second finds, once the first has committed, a link that has ended.
    link = (links.select_for_update(of=("self",)) if locked else links).first()
    if link is None:
        raise LinkRefused
    return link
