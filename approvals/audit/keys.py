"""The Ed25519 key that seals are signed with. It is never in the database: in the environment, or in a file."""

import base64
import binascii
import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings

KEY_BYTES = 32


class KeyProblem(Exception):
    """The key, or what should be one, cannot be used; the text says which setting to look at."""


def signing_key() -> Ed25519PrivateKey:
    """The deployment's key. Outside production the first use makes one. Raises `KeyProblem`."""
    if key := _configured():
        return key
    if settings.PRODUCTION:
        raise KeyProblem(f"FERMATA_AUDIT_KEY is not set and {settings.FERMATA_AUDIT_KEY_FILE} does not exist")
    _create(Path(settings.FERMATA_AUDIT_KEY_FILE))
    return signing_key()


def trusted_keys() -> frozenset[bytes]:
    """The public keys whose seals count here: the deployment's own, if it has one yet, and its retired ones."""
    own = _configured()
    retired = frozenset(public_key(text) for text in settings.FERMATA_AUDIT_RETIRED_KEYS)
    return retired | {public_bytes(own)} if own else retired


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def public_key(text: str) -> bytes:
    """A public key, as `verify_audit` prints it, from its base64 text. Raises `KeyProblem`."""
    return _decode(text, "a public key of the audit trail")


def is_signed(message: bytes, signature: bytes, key: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _configured() -> Ed25519PrivateKey | None:
    if settings.FERMATA_AUDIT_KEY:
        return Ed25519PrivateKey.from_private_bytes(_decode(settings.FERMATA_AUDIT_KEY, "FERMATA_AUDIT_KEY"))
    try:
        text = Path(settings.FERMATA_AUDIT_KEY_FILE).read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    return Ed25519PrivateKey.from_private_bytes(_decode(text, str(settings.FERMATA_AUDIT_KEY_FILE)))


def _decode(text: str, name: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise KeyProblem(f"{name} is not the base64 text of {KEY_BYTES} bytes")
    return key


def _create(path: Path) -> None:
    """Whole or not at all, and never over another's: two processes may get here at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # the other's key is the key
    finally:
        os.unlink(draft)
