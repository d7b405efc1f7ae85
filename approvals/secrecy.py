"""Credentials where a value must stay exactly as it was sent: nothing can be redacted there, so it is refused."""

from typing import Any

from checkpoints import codec
from runs.strictjson import pointer


def credentials_in(value: Any) -> list[tuple[str, str]]:
    """The credentials in a JSON value, as (JSON pointer, message) pairs."""
    return [
        (pointer(path), f"looks like a credential ({rule}): send a reference to it instead")
        for path, rule in codec.credentials_in(value, "")
    ]
