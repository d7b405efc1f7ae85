"""Who sends a request: an agent with its key, or a person with a session, a token or, on a
development instance, a password."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.timezone import now
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from runs.clock import DatabaseNow
from runs.models import AgentKey, PersonalToken
from runs.principals import AgentPrincipal, Person

Secret = TypeVar("Secret", AgentKey, PersonalToken)

_KEY = re.compile(r"fmt_([a-z0-9]{1,16})_[A-Za-z0-9_-]{20,100}", re.ASCII)
_TOKENS = "fmp_"
_TOKEN = re.compile(r"fmp_([a-z0-9]{1,16})_[A-Za-z0-9_-]{20,100}", re.ASCII)
_NOTED_EVERY = timedelta(minutes=1)


class AgentKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer fmt_PREFIX_SECRET`. Every key that does not work gets the same answer."""

    def authenticate(self, request: Request) -> tuple[AgentPrincipal, AgentKey] | None:
        text = _bearer(request)
        if text is None or text.startswith(_TOKENS):
            return None
        key = _proven(text, _KEY, _living_key)
        if key is None:
            raise AuthenticationFailed("The key is unknown, expired or revoked.", code="key_refused")
        _note_use(key)
        return AgentPrincipal(agent=key.agent, key=key), key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="fermata"'


class PersonalTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer fmp_PREFIX_SECRET`. Every token that does not work gets the same answer."""

    def authenticate(self, request: Request) -> tuple[Person, PersonalToken] | None:
        text = _bearer(request)
        if text is None or not text.startswith(_TOKENS):
            return None
        token = _proven(text, _TOKEN, _living_token)
        if token is None:
            raise AuthenticationFailed("The token is unknown, expired or revoked.", code="token_refused")
        _note_use(token)
        return Person(user=token.person, token=token), token


class PersonSessionAuthentication(SessionAuthentication):
    """The session of the inbox, with its CSRF token on everything but reads."""

    def authenticate(self, request: Request) -> tuple[Any, None] | None:
        found = super().authenticate(request)
        return found and (Person(user=found[0]), None)


class PersonBasicAuthentication(BaseAuthentication):
    """User name and password, for scripts on a development instance (`FERMATA_BASIC_VOTES`).

    Never over plain HTTP from another machine: the password would travel in the clear.
    """

    def authenticate(self, request: Request) -> tuple[Person, None] | None:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        if not settings.FERMATA_BASIC_VOTES:
            raise AuthenticationFailed("HTTP Basic is switched off on this instance.", code="basic_refused")
        if not (request.is_secure() or _is_this_machine(request.META.get("REMOTE_ADDR", ""))):
            raise AuthenticationFailed("HTTP Basic needs https, or the same machine.", code="basic_refused")
        username, _, password = _decoded(text).partition(":")
        user = authenticate(request=request._request, username=username, password=password)
        if not isinstance(user, User) or not user.is_active:
            raise AuthenticationFailed("The user name or the password is wrong.", code="password_refused")
        return Person(user=user), None


EITHER = (AgentKeyAuthentication, PersonalTokenAuthentication, PersonBasicAuthentication, PersonSessionAuthentication)


def _bearer(request: Request) -> str | None:
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else None


def _proven(text: str, pattern: re.Pattern[str], living: Callable[[str], Secret | None]) -> Secret | None:
    """What the prefix of `text` finds, if the whole of `text` is its secret."""
    match = pattern.fullmatch(text)
    found = living(match[1]) if match else None
    if found is None or not hmac.compare_digest(hashlib.sha256(text.encode()).digest(), bytes(found.digest)):
        return None
    return found


def _living_key(prefix: str) -> AgentKey | None:
    return (
        AgentKey.objects.select_related("agent", "agent__team")
        .filter(Q(expires_at__isnull=True) | Q(expires_at__gt=DatabaseNow()))
        .filter(prefix=prefix, revoked_at__isnull=True, agent__is_active=True)
        .first()
    )


def _living_token(prefix: str) -> PersonalToken | None:
    tokens = PersonalToken.objects.select_related("person").filter(prefix=prefix, person__is_active=True)
    return tokens.filter(revoked_at__isnull=True, expires_at__gt=DatabaseNow()).first()


def _note_use(key: AgentKey | PersonalToken) -> None:
    """About once a minute, so that most requests write nothing."""
    if key.last_used_at is None or now() - key.last_used_at > _NOTED_EVERY:
        type(key)._default_manager.filter(pk=key.pk).update(last_used_at=Now())


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise AuthenticationFailed("The Authorization header is malformed.", code="password_refused") from error


def _is_this_machine(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
