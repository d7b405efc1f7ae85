"""Personal tokens: a person's scripts read and vote as that person, for at most thirty days."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from runs.clock import DatabaseNow, database_now
from runs.errors import RunError
from runs.models import TOKEN_LIFE, PersonalToken, TokenScope
from runs.services.drawing import draw
from runs.services.recording import actor_of, record_person

MOST_TOKENS = 20  # that work, of one person


@dataclass(frozen=True)
class IssuedToken:
    """A token just made. `text` is shown once and kept nowhere."""

    token: PersonalToken
    text: str


@dataclass
class TokenRefused(RunError):
    """A token cannot be made like this; `why` is a sentence for the person."""

    why: str

    def __str__(self) -> str:
        return self.why


@transaction.atomic
def make_token(*, person: User, name: str, lasts: timedelta, may_vote: bool) -> IssuedToken:
    """Make a token that reads, and votes if it may. The caller has just checked the person's password.

    Raises `TokenRefused`.
    """
    if not timedelta(0) < lasts <= TOKEN_LIFE:
        raise TokenRefused(f"A token lasts from one to {TOKEN_LIFE.days} days.")
    User.objects.select_for_update(no_key=True).get(pk=person.pk)  # two at once would both be the last that is allowed
    if living_tokens(person).count() >= MOST_TOKENS:
        raise TokenRefused(f"You have {MOST_TOKENS} tokens that work: revoke one first.")
    now = database_now()
    drawn = draw("fmp")
    token = PersonalToken.objects.create(
        person=person,
        name=name,
        prefix=drawn.prefix,
        digest=drawn.digest,
        scopes=[TokenScope.READ, *([TokenScope.VOTE] if may_vote else [])],
        created_at=now,
        expires_at=now + lasts,
    )
    facts = {"scopes": [str(scope) for scope in token.scopes], "expires_at": token.expires_at.isoformat()}
    _record(token, "token.created", actor_of(person), facts)
    return IssuedToken(token, drawn.text)


@transaction.atomic
def revoke_token(*, token: PersonalToken) -> None:
    """Its person ends a token, at once. Again: nothing changes."""
    _end([token], actor=actor_of(token.person), why="revoked")


@transaction.atomic
def end_tokens(*, person: User, actor: str, why: str) -> None:
    """End all of a person's tokens: their password was set anew, or their account was closed."""
    _end(list(living_tokens(person)), actor=actor, why=why)


def living_tokens(person: User) -> Any:
    """The person's tokens that work, newest first."""
    return PersonalToken.objects.filter(person=person, revoked_at__isnull=True, expires_at__gt=DatabaseNow()).order_by(
        "-created_at"
    )


def _end(tokens: list[PersonalToken], *, actor: str, why: str) -> None:
    for token in tokens:
        if PersonalToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=DatabaseNow()):
            _record(token, "token.revoked", actor, {"why": why})


def _record(token: PersonalToken, event: str, actor: str, facts: dict[str, Any]) -> None:
    record_person(person=token.person_id, type=event, actor=actor, facts={"prefix": token.prefix, **facts})
