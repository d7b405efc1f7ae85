"""Credentials where a value must stay exactly as it was sent: nothing can be redacted there, so it is refused."""

from typing import Any

from checkpoints.codec import refuse_credentials
from checkpoints.errors import HoldsCredential
from runs.strictjson import pointer


def credentials_in(value: Any) -> list[tuple[str, str]]:
    """The first credential in a JSON value, as a (JSON pointer, message) pair; empty when there is none."""
    try:
        refuse_credentials(value, "")
    except HoldsCredential as error:
        return [(pointer(error.path), f"looks like a credential ({error.rule}): send a reference to it instead")]
    return []
