"""Secrets: had anew wherever they are used, from the provider that `settings.FERMATA_SECRETS` names, and never saved.

A provider is a function from a secret's name to its value, or to None where there is no such secret.
"""

import os
from collections.abc import Callable
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from checkpoints.codec import SecretRef, keep_out
from runs.engine.tools import NotPerformed

PREFIX = "FERMATA_SECRET_"


class SecretMissing(NotPerformed):
    """The deployment has no such secret."""


def from_environment(name: str) -> str | None:
    """The provider of deployments that name none: the environment variable `FERMATA_SECRET_` and the name."""
    return os.environ.get(PREFIX + name)


def secret(name: str | SecretRef) -> str:
    """The value of a secret, for use in this process only: where a run would save it, that is refused, with the path.

    For tools; a phase calls `run.secret`. Raises ValueError for what is no secret's name, SecretMissing, and
    NotPerformed when the provider fails: a tool that has its secrets before it does anything has done nothing then.
    """
    name = name.name if isinstance(name, SecretRef) else SecretRef(name).name
    provide = cast("Callable[[str], str | None]", import_string(settings.FERMATA_SECRETS))
    try:
        value = provide(name)
    except Exception as error:
        raise NotPerformed(f"secret {name!r}: {settings.FERMATA_SECRETS} raised {type(error).__qualname__}") from error
    if not value:
        hint = f": set {PREFIX}{name}" if provide is from_environment else f" at {settings.FERMATA_SECRETS}"
        raise SecretMissing(f"there is no secret {name!r}{hint}")
    keep_out(name, value)
    return value
