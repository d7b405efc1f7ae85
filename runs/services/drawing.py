"""Texts that nobody can guess, and by which an agent or a person is known: `KIND_PREFIX_SECRET`."""

import hashlib
import secrets
import string
from dataclasses import dataclass

PREFIX_LETTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True)
class Drawn:
    """`text` is shown once and kept nowhere. It is looked up by `prefix` and proven by `digest` (SHA-256)."""

    prefix: str
    text: str
    digest: bytes


def draw(kind: str) -> Drawn:
    prefix = "".join(secrets.choice(PREFIX_LETTERS) for _ in range(12))
    text = f"{kind}_{prefix}_{secrets.token_urlsafe(32)}"
    return Drawn(prefix=prefix, text=text, digest=hashlib.sha256(text.encode()).digest())
