"""What agents post, made fit to be saved, or refused with its place."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from django.conf import settings

from checkpoints import codec
from checkpoints.errors import HoldsCredential, Unencodable
from runs.errors import CredentialPosted, InvalidInput
from runs.models import Agent, OnCredentials

Clean: TypeAlias = "Callable[[Any], Any]"

LONGEST_TITLE = 200


def cleaner(agent: Agent) -> Clean:
    """What is done to everything that this agent posts before it is saved."""
    return codec.redact if agent.on_credentials == OnCredentials.REDACT else _as_posted


def encoded(value: Any, path: str) -> bytes:
    """What was posted as `path`, to be saved. Raises CredentialPosted, InvalidInput, SnapshotTooLarge."""
    with refusing():
        return codec.encode(value, path=path, limit=settings.FERMATA_SNAPSHOT_LIMIT)


def called(text: str, path: str) -> str:
    """A name posted as `path`. Its agent finds something by it, so it stays what it is: raises CredentialPosted."""
    for _, rule in codec.credentials_in(text, path):
        raise CredentialPosted(path, _why(rule), rule)
    return text


def titled(agent: Agent, text: str, path: str) -> str:
    """The title of what this agent posts as `path`, as it is to be saved. Raises CredentialPosted."""
    return called(cleaner(agent)(text)[:LONGEST_TITLE], path)


@contextmanager
def refusing(prefix: str = "") -> Iterator[None]:
    """Raises CredentialPosted and InvalidInput for what the codec refuses to save; `prefix` goes before its path."""
    try:
        yield
    except HoldsCredential as error:
        raise CredentialPosted(prefix + error.path, _why(error.rule), error.rule) from error
    except Unencodable as error:
        raise InvalidInput(prefix + error.path, error.reason) from error


def _why(rule: str) -> str:
    return f"looks like a credential ({rule}): send a reference to it instead"


def _as_posted(value: Any) -> Any:
    return value
