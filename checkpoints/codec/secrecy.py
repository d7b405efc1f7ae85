"""Credentials do not get into a snapshot: what holds one is refused, what is kept in its place is a `SecretRef`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any

from checkpoints.codec.encoding import Walk
from checkpoints.codec.places import SET_ITEM, Place, render, root, step_to
from checkpoints.codec.registry import EnumClass, entry_of, register
from checkpoints.credentials import find, is_secret_name, may_hold_one, redacted
from checkpoints.errors import HoldsCredential

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}")
_kept_out: ContextVar[dict[bytes, str] | None] = ContextVar("kept_out", default=None)  # names by values
# A shorter secret is recognised where it is the whole text: as a part of one it would be found everywhere.
_TELLING_LENGTH = 8
_BATCH = 500  # texts


@register("fermata/secret-ref")
@dataclass(frozen=True, slots=True)
class SecretRef:
    """The name under which the deployment keeps a secret; the secret itself is looked up where it is used."""

    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError("a secret's name has letters, digits and ._-, and begins with a letter")


@contextmanager
def keeping_secrets_out() -> Iterator[None]:
    """From each `keep_out` until the end of this, that secret is refused, or redacted, as any credential is."""
    token = _kept_out.set({})
    try:
        yield
    finally:
        _kept_out.reset(token)


def keep_out(name: str, value: str) -> None:
    """Refuse `value`, the secret `name`, wherever it is to be saved. Outside of `keeping_secrets_out` this is void."""
    known = _kept_out.get()
    if known is not None:
        known[value.encode(errors="surrogatepass")] = name


def packed_to_save(walk: Walk, value: object, place: Place, depth: int = 0) -> bytes:
    """`value` as msgpack, if there is no credential in it. Raises Unencodable, HoldsCredential."""
    data = walk.packed(value, place, depth)
    name = place[1] if isinstance(place[1], str) else ""
    if may_hold_one(data) or is_secret_name(name) or any(secret in data for secret in _kept_out.get() or ()):
        for where, rule in _credentials(value, place, name):
            raise HoldsCredential(where, rule)
    return data


def credentials_in(value: object, path: str) -> list[tuple[str, str]]:
    """The path and the rule of each credential in `value`, which goes by `path`, whether or not it could be saved."""
    return list(_credentials(value, root(path), ""))


def redact(value: Any, name: str = "") -> Any:
    """A copy of `value` in which `[redacted: rule]` stands for each credential. `name` is the key it goes by."""
    if type(value) is str:
        return redacted(_without_secrets(value.encode(errors="surrogatepass")).decode(errors="surrogatepass"), name)
    if isinstance(value, dict):
        return {redact(key): redact(item, key if type(key) is str else "") for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item, name) for item in value]
    if type(value) in (tuple, set, frozenset):
        return type(value)(redact(item, name) for item in value)
    if type(value) is bytes:
        return redacted(_without_secrets(value).decode("latin-1"), name).encode("latin-1")
    entry = entry_of(type(value))
    if entry is None or isinstance(entry, EnumClass):
        return value
    return entry.restore({field: redact(item, field) for field, item in entry.content(value).items()})


def _credentials(value: object, place: Place, name: str) -> Iterator[tuple[str, str]]:
    texts = _texts(value, place, name)
    while batch := list(islice(texts, _BATCH)):
        if not _worth_a_look(batch):
            continue
        for where, nearest, text in batch:
            rule = find(text, nearest) or next((f"the secret {known}" for _, known in _secrets_in(text)), None)
            if rule is not None:
                yield render(where), rule


def _worth_a_look(batch: list[tuple[Place, str, bytes]]) -> bool:
    """Whether any text of a batch may be a credential: one look at them all costs less than one at each."""
    together = b"\0".join([text for _, _, text in batch])
    return (
        may_hold_one(together)
        or any(is_secret_name(nearest) for _, nearest, _ in batch)
        or any(secret in together for secret in _kept_out.get() or ())
    )


def _secrets_in(text: bytes) -> Iterator[tuple[bytes, str]]:
    for secret, name in (_kept_out.get() or {}).items():
        if secret == text or (len(secret) >= _TELLING_LENGTH and secret in text):
            yield secret, name


def _without_secrets(text: bytes) -> bytes:
    for secret, name in _secrets_in(text):
        text = text.replace(secret, f"[redacted: the secret {name}]".encode())
    return text


def _texts(value: Any, place: Place, name: str) -> Iterator[tuple[Place, str, bytes]]:
    """Every text in `value`, with its place and the nearest name above it.

    A key stands at the place of its dict: a path must not show what may be a credential.
    """
    kind = type(value)
    if kind is str:
        yield place, name, value.encode()
    elif kind is bytes:
        yield place, name, value
    elif kind is dict:
        for key, item in value.items():
            yield from _texts(key, place, "")
            yield from _texts(item, (place, step_to(key)), key if type(key) is str else "")
    elif kind in (list, tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (place, index), name)
    elif kind in (set, frozenset):
        for item in value:
            yield from _texts(item, (place, SET_ITEM), name)
    else:
        entry = entry_of(kind)
        if entry is not None and not isinstance(entry, EnumClass):
            yield from _texts(entry.content(value), place, name)
